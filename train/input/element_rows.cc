// SPDX-License-Identifier: Apache-2.0
#include "train/input/element_rows.h"

#include <string_view>
#include <utility>

#include "core/base/parallel.h"
#include "core/tensor/variant.h"

namespace tenon {
namespace {

/// How many rows are read at once of which each becomes an element.
constexpr int64_t kRowsAhead = 64;

class ElementValue final : public VariantValue {
 public:
  explicit ElementValue(InputElement value) : element(std::move(value)) {}
  std::string_view type_name() const override { return "tenon::InputElement"; }

  const InputElement element;
};

/// The element that row `row` of a column of elements holds.
const InputElement& ElementAt(const Tensor& column, int64_t row) {
  return static_cast<const ElementValue&>(*column.data<Variant>()[row].value).element;
}

/// An element a batch: the source may wait for each.
class ElementColumn final : public BatchSource {
 public:
  explicit ElementColumn(std::unique_ptr<InputSource> from)
      : schema_(std::make_shared<RowSchema>(
            RowSchema{{"element", DType::kVariant, PartialShape(Shape())}})),
        from_(std::move(from)) {}
  const std::shared_ptr<const RowSchema>& schema() const override { return schema_; }

  StatusOr<bool> Next(int64_t, RowBatch* batch) override {
    InputElement element;
    TENON_ASSIGN_OR_RETURN(const bool found, from_->Next(&element));
    if (!found) return false;
    TENON_ASSIGN_OR_RETURN(Tensor column, Tensor::Allocate(CpuAllocator(), DType::kVariant, {1}));
    column.data<Variant>()[0].value = std::make_shared<ElementValue>(std::move(element));
    *batch = {schema_, {std::move(column)}};
    return true;
  }

 private:
  const std::shared_ptr<const RowSchema> schema_;
  const std::unique_ptr<InputSource> from_;
};

/// Row `row` of a tensor, without its first dimension.
StatusOr<Tensor> RowOf(const Tensor& column, int64_t row) {
  return column.Slice(row, row + 1).Reshaped(column.shape().WithoutDim(0));
}

class RowElements final : public InputSource {
 public:
  explicit RowElements(RowWalk walk) : walk_(std::move(walk)) {}

  StatusOr<bool> Next(InputElement* element) override {
    if (next_ == batch_.num_rows()) {
      batch_ = {};
      next_ = 0;
      TENON_ASSIGN_OR_RETURN(const bool found, walk_.rows->Next(RowsAhead(), &batch_));
      if (!found) return false;
      if (walk_.form == RowWalk::Form::kFiles) {
        TENON_ASSIGN_OR_RETURN(elements_, walk_.read(batch_));
      }
    }
    const int64_t row = next_++;
    if (walk_.form == RowWalk::Form::kFiles) {
      *element = std::move(elements_[static_cast<size_t>(row)]);
      return true;
    }
    if (walk_.form == RowWalk::Form::kElements) {
      *element = ElementAt(batch_.columns[0], row);
      batch_ = {};  // the loop holds the element alone
      next_ = 0;
      return true;
    }
    const bool numbers = walk_.form == RowWalk::Form::kNumbers;
    const int64_t at = numbers ? batch_.columns[0].data<int64_t>()[row] : row;
    element->clear();
    for (const Tensor& column : numbers ? walk_.tensors : batch_.columns) {
      TENON_ASSIGN_OR_RETURN(Tensor value, RowOf(column, at));
      element->push_back(std::move(value));
    }
    return true;
  }

 private:
  int64_t RowsAhead() const {
    switch (walk_.form) {
      case RowWalk::Form::kElements:
        return 1;
      case RowWalk::Form::kFiles:
        return 2 * ThreadBudget();
      default:
        return kRowsAhead;
    }
  }

  RowWalk walk_;
  RowBatch batch_;
  std::vector<InputElement> elements_;  // of files
  int64_t next_ = 0;                    // of the batch
};

/// Tensor `t` of each element, in a new first dimension.
StatusOr<Tensor> Stacked(const std::vector<InputElement>& elements, size_t t) {
  const Tensor& first = elements[0][t];
  std::vector<Tensor> rows;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& row = elements[i][t];
    if (row.dtype() != first.dtype() || row.shape() != first.shape()) {
      return InvalidArgument("elements of a batch have equal tensors; tensor ", t, " is ",
                             ToString(first.dtype()), first.shape().ToString(), " in its first, ",
                             ToString(row.dtype()), row.shape().ToString(), " in element ", i);
    }
    if (!IsPlain(row.dtype()) && row.dtype() != DType::kString) {
      return InvalidArgument("batches cannot be made of tensors of ", ToString(row.dtype()));
    }
    DimVector dims = {1};
    for (const int64_t dim : row.shape().dims()) dims.push_back(dim);
    TENON_ASSIGN_OR_RETURN(Tensor of_one, row.Reshaped(Shape(dims)));
    rows.push_back(std::move(of_one));
  }
  TENON_ASSIGN_OR_RETURN(Tensor stacked, ConcatenateRows(rows, "a batch"));
  // A batch is its own: of one element it is a copy.
  return rows.size() == 1 ? stacked.Copy() : std::move(stacked);
}

StatusOr<InputElement> StackedElements(const std::vector<InputElement>& elements) {
  const size_t tensors = elements[0].size();
  for (const InputElement& element : elements) {
    if (element.size() == tensors) continue;
    return InvalidArgument("elements of a batch have equally many tensors; found ", element.size(),
                           " after ", tensors);
  }
  InputElement batch;
  for (size_t t = 0; t < tensors; ++t) {
    TENON_ASSIGN_OR_RETURN(Tensor stacked, Stacked(elements, t));
    batch.push_back(std::move(stacked));
  }
  return batch;
}

class BatchElements final : public InputSource {
 public:
  BatchElements(RowWalk walk, int64_t size, bool drop_remainder) : walk_(std::move(walk)) {
    size_ = size;
    walk_.rows = RebatchRows(std::move(walk_.rows), size, drop_remainder);
  }

  StatusOr<bool> Next(InputElement* element) override {
    RowBatch batch;
    TENON_ASSIGN_OR_RETURN(const bool found, walk_.rows->Next(size_, &batch));
    if (!found) return false;
    switch (walk_.form) {
      case RowWalk::Form::kColumns:
        *element = std::move(batch.columns);
        break;
      case RowWalk::Form::kElements: {
        std::vector<InputElement> elements;
        for (int64_t i = 0; i < batch.num_rows(); ++i) {
          elements.push_back(ElementAt(batch.columns[0], i));
        }
        TENON_ASSIGN_OR_RETURN(*element, StackedElements(elements));
        break;
      }
      case RowWalk::Form::kFiles: {
        TENON_ASSIGN_OR_RETURN(const std::vector<InputElement> elements, walk_.read(batch));
        TENON_ASSIGN_OR_RETURN(*element, StackedElements(elements));
        break;
      }
      case RowWalk::Form::kNumbers:
        element->clear();
        for (const Tensor& tensor : walk_.tensors) {
          TENON_ASSIGN_OR_RETURN(Tensor rows, GatherRows(tensor, batch.columns[0].flat<int64_t>()));
          element->push_back(std::move(rows));
        }
        break;
    }
    return true;
  }

 private:
  RowWalk walk_;
  int64_t size_;
};

}  // namespace

StatusOr<RowWalk> RowsOfTensors(std::vector<Tensor> tensors) {
  if (tensors.empty()) return InvalidArgument("an input pipeline needs a tensor to take rows of");
  for (const Tensor& t : tensors) {
    if (!t.valid() || t.rank() < 1) {
      return InvalidArgument("an input pipeline takes rows of tensors, found ",
                             t.valid() ? t.shape().ToString() : "no value");
    }
    if (t.dim(0) != tensors[0].dim(0)) {
      return InvalidArgument("tensors of ", tensors[0].dim(0), " and ", t.dim(0),
                             " rows do not belong together");
    }
  }
  RowWalk walk;
  walk.form = RowWalk::Form::kNumbers;
  walk.rows = NumberRows(tensors[0].dim(0));
  walk.tensors = std::move(tensors);
  return walk;
}

RowWalk RowsOfElements(std::unique_ptr<InputSource> source) {
  RowWalk walk;
  walk.form = RowWalk::Form::kElements;
  walk.rows = std::make_unique<ElementColumn>(std::move(source));
  return walk;
}

std::unique_ptr<InputSource> ElementsOfRows(RowWalk walk) {
  return std::make_unique<RowElements>(std::move(walk));
}

std::unique_ptr<InputSource> BatchesOfRows(RowWalk walk, int64_t size, bool drop_remainder) {
  return std::make_unique<BatchElements>(std::move(walk), size, drop_remainder);
}

}  // namespace tenon
