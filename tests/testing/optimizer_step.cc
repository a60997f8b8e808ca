// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/optimizer_step.h"

#include <cmath>

#include "ops/array/constants.h"
#include "ops/math/math_ops.h"
#include "ops/state/state_ops.h"
#include "tests/testing/graph_session.h"

namespace tenon::testing {
namespace {

double SignOf(double x) { return x == 0 ? 0 : std::copysign(1, x); }

void Prox(double& x, double rate, double l1, double l2) {
  x = SignOf(x) * std::fmax(std::fabs(x) - rate * l1, 0) / (1 + rate * l2);
}

void AdamMoments(Elements& v, const Scalars& s, double g) {
  v[1] = s.at("beta1") * v[1] + (1 - s.at("beta1")) * g;
  v[2] = s.at("beta2") * v[2] + (1 - s.at("beta2")) * g * g;
}

double AdamRate(const Scalars& s) {
  return s.at("lr") * std::sqrt(1 - s.at("beta2_power")) / (1 - s.at("beta1_power"));
}

void Ftrl(Elements& v, const Scalars& s, double g, bool linear_by_lr) {
  const double lr = s.at("lr"), power = -s.at("lr_power"), accum = v[1] + g * g;
  const double unit = linear_by_lr ? lr : 1,
               shrinkage = s.count("l2_shrinkage") ? s.at("l2_shrinkage") : 0;
  const double sigma = (std::pow(accum, power) - std::pow(v[1], power)) / lr;
  v[2] += unit * (g + 2 * shrinkage * v[0] - sigma * v[0]);
  const double l1 = unit * s.at("l1");
  v[0] = (std::fmin(std::fmax(v[2], -l1), l1) - v[2]) /
         (unit * (std::pow(accum, power) / lr + 2 * s.at("l2")));
  v[1] = accum;
}

void Momentum(Elements& v, const Scalars& s, double g, bool nesterov) {
  v[1] = s.at("momentum") * v[1] + g;
  v[0] -= s.at("lr") * (nesterov ? g + s.at("momentum") * v[1] : v[1]);
}

void RMSProp(Elements& v, const Scalars& s, double g, bool) {
  const double rho = s.at("rho");
  v[1] = rho * v[1] + (1 - rho) * g * g;
  v[2] = s.at("momentum") * v[2] + s.at("lr") * g / std::sqrt(v[1] + s.at("epsilon"));
  v[0] -= v[2];
}

Elements SomeGradients(int64_t n) {
  Elements g(n);
  for (int64_t i = 0; i < n; ++i) {
    g[i] = i % 7 == 3 ? 0 : std::sin(1.0 + 2.3 * static_cast<double>(i));
  }
  return g;
}

}  // namespace

const std::vector<Optimizer>& Optimizers() {
  static const auto* const optimizers = new std::vector<Optimizer>{
      {"GradientDescent",
       {1},
       {{"alpha", .1}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) { v[0] -= s.at("alpha") * g; }},
      {"ProximalGradientDescent",
       {.1},
       {{"alpha", .5}, {"l1", .4}, {"l2", .3}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         v[0] -= s.at("alpha") * g;
         Prox(v[0], s.at("alpha"), s.at("l1"), s.at("l2"));
       }},
      {"Adadelta",
       {1, .5, .3},
       {{"lr", .5}, {"rho", .9}, {"epsilon", .01}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         const double rho = s.at("rho"), epsilon = s.at("epsilon");
         v[1] = rho * v[1] + (1 - rho) * g * g;
         const double update = std::sqrt((v[2] + epsilon) / (v[1] + epsilon)) * g;
         v[0] -= s.at("lr") * update;
         v[2] = rho * v[2] + (1 - rho) * update * update;
       }},
      {"Adagrad",
       {1, .5},
       {{"lr", .1}},
       "update_slots",
       [](Elements& v, const Scalars& s, double g, bool update_slots) {
         if (update_slots) v[1] += g * g;
         v[0] -= s.at("lr") * g / std::sqrt(v[1]);
       }},
      {"AdagradV2",
       {1, .5},
       {{"lr", .1}, {"epsilon", .2}},
       "update_slots",
       [](Elements& v, const Scalars& s, double g, bool update_slots) {
         if (update_slots) v[1] += g * g;
         v[0] -= s.at("lr") * g / (std::sqrt(v[1]) + s.at("epsilon"));
       }},
      {"ProximalAdagrad",
       {.1, .5},
       {{"lr", .5}, {"l1", .4}, {"l2", .3}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         v[1] += g * g;
         const double rate = s.at("lr") / std::sqrt(v[1]);
         v[0] -= rate * g;
         Prox(v[0], rate, s.at("l1"), s.at("l2"));
       }},
      {"AdagradDA",
       {1, .5, .3},
       {{"lr", .1}, {"l1", .4}, {"l2", .3}, {"global_step", 2}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         v[1] += g;
         v[2] += g * g;
         const double steps = s.at("global_step");
         v[0] = -s.at("lr") * SignOf(v[1]) * std::fmax(std::fabs(v[1]) - s.at("l1") * steps, 0) /
                (s.at("l2") * steps * s.at("lr") + std::sqrt(v[2]));
       }},
      {"Ftrl",
       {1, .5, .3},
       {{"lr", .5}, {"l1", .4}, {"l2", .3}, {"lr_power", -.5}},
       "multiply_linear_by_lr",
       Ftrl},
      {"Ftrl",
       {1, .5, .3},
       {{"lr", .5}, {"l1", 0}, {"l2", .3}, {"lr_power", -.7}},
       "multiply_linear_by_lr",
       Ftrl},
      {"FtrlV2",
       {1, .5, .3},
       {{"lr", .5}, {"l1", .4}, {"l2", .3}, {"l2_shrinkage", .2}, {"lr_power", -.5}},
       "multiply_linear_by_lr",
       Ftrl},
      {"Momentum", {1, .5}, {{"lr", .1}, {"momentum", .9}}, "use_nesterov", Momentum},
      {"KerasMomentum",
       {1, .5},
       {{"lr", .1}, {"momentum", .9}},
       "use_nesterov",
       [](Elements& v, const Scalars& s, double g, bool nesterov) {
         v[1] = s.at("momentum") * v[1] - s.at("lr") * g;
         v[0] += nesterov ? s.at("momentum") * v[1] - s.at("lr") * g : v[1];
       }},
      {"Adam",
       {1, .5, .3},
       {{"beta1_power", .7},
        {"beta2_power", .9},
        {"lr", .1},
        {"beta1", .9},
        {"beta2", .99},
        {"epsilon", .01}},
       "use_nesterov",
       [](Elements& v, const Scalars& s, double g, bool nesterov) {
         AdamMoments(v, s, g);
         const double m = nesterov ? s.at("beta1") * v[1] + (1 - s.at("beta1")) * g : v[1];
         v[0] -= AdamRate(s) * m / (std::sqrt(v[2]) + s.at("epsilon"));
       }},
      {"AdamWithAmsgrad",
       {1, .5, .3, .32},
       {{"beta1_power", .7},
        {"beta2_power", .9},
        {"lr", .1},
        {"beta1", .9},
        {"beta2", .99},
        {"epsilon", .01}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         AdamMoments(v, s, g);
         v[3] = std::fmax(v[3], v[2]);
         v[0] -= AdamRate(s) * v[1] / (std::sqrt(v[3]) + s.at("epsilon"));
       }},
      {"AdaMax",
       {1, .5, .3},
       {{"beta1_power", .7}, {"lr", .1}, {"beta1", .9}, {"beta2", .99}, {"epsilon", .01}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         v[1] = s.at("beta1") * v[1] + (1 - s.at("beta1")) * g;
         v[2] = std::fmax(s.at("beta2") * v[2], std::fabs(g));
         v[0] -= s.at("lr") / (1 - s.at("beta1_power")) * v[1] / (v[2] + s.at("epsilon"));
       }},
      {"RMSProp",
       {1, .5, .3},
       {{"lr", .1}, {"rho", .9}, {"momentum", .5}, {"epsilon", .01}},
       "",
       RMSProp},
      {"CenteredRMSProp",
       {1, .1, .5, .3},
       {{"lr", .1}, {"rho", .9}, {"momentum", .5}, {"epsilon", .01}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         const double rho = s.at("rho");
         v[1] = rho * v[1] + (1 - rho) * g;
         v[2] = rho * v[2] + (1 - rho) * g * g;
         v[3] = s.at("momentum") * v[3] +
                s.at("lr") * g / std::sqrt(v[2] - v[1] * v[1] + s.at("epsilon"));
         v[0] -= v[3];
       }},
      {"AddSign",
       {1, .1},
       {{"lr", .1}, {"alpha", .7}, {"sign_decay", .4}, {"beta", .9}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         v[1] = s.at("beta") * v[1] + (1 - s.at("beta")) * g;
         v[0] -= s.at("lr") * (s.at("alpha") + s.at("sign_decay") * SignOf(g) * SignOf(v[1])) * g;
       }},
      {"PowerSign",
       {1, .1},
       {{"lr", .1}, {"logbase", .7}, {"sign_decay", .4}, {"beta", .9}},
       "",
       [](Elements& v, const Scalars& s, double g, bool) {
         v[1] = s.at("beta") * v[1] + (1 - s.at("beta")) * g;
         const double power = s.at("logbase") * s.at("sign_decay") * SignOf(g) * SignOf(v[1]);
         v[0] -= s.at("lr") * std::exp(power) * g;
       }},
  };
  return *optimizers;
}

Tensor DoubleTensor(const Shape& shape, const Elements& values) {
  Tensor t(DType::kDouble, shape);
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}

OptimizerStep::OptimizerStep(const Optimizer& optimizer, const std::string& prefix,
                             const Shape& shape)
    : optimizer(optimizer), op(prefix + optimizer.name), shape(shape), scalars(optimizer.scalars) {
  const int64_t n = shape.num_elements();
  for (const double first : optimizer.start) {
    Elements& values = variables.emplace_back();
    for (int64_t i = 0; i < n; ++i) values.push_back(first + .01 * static_cast<double>(i % 9));
  }
  gradient = DoubleTensor(shape, SomeGradients(n));
}

void OptimizerStep::SetRows(const std::vector<int64_t>& indices_of_rows) {
  rows = indices_of_rows;
  const Shape of_rows = shape.WithDim(0, static_cast<int64_t>(rows.size()));
  gradient = DoubleTensor(of_rows, SomeGradients(of_rows.num_elements()));
  indices = Tensor::Vector<int64_t>(rows);
}

bool OptimizerStep::is_declared() const { return AllOps().Find(op) != nullptr; }

std::vector<Elements> OptimizerStep::Expected(int times) const {
  std::vector<Elements> wanted = variables;
  const Elements g = Numbers(gradient);
  const auto width = static_cast<int64_t>(rows.empty() ? 1 : g.size() / rows.size());
  for (int t = 0; t < times; ++t) {
    for (int64_t i = 0; i < static_cast<int64_t>(g.size()); ++i) {
      const int64_t at = is_sparse() ? rows[i / width] * width + i % width : i;
      Elements v;
      for (const Elements& values : wanted) v.push_back(values[at]);
      optimizer.step(v, scalars, g[i], flag);
      for (size_t k = 0; k < v.size(); ++k) wanted[k][at] = v[k];
    }
  }
  return wanted;
}

Status OptimizerStep::Run(int times) {
  GraphSession s;
  const auto input = [&](const Tensor& t) { return Cast(Const(t), dtype); };
  NodeBuilder node(op);
  std::vector<Output> handles, reads, inits;
  for (const ArgSchema& arg : AllOps().Find(op)->schema.inputs) {
    if (arg.is_ref || arg.type == DType::kResource) {
      const size_t k = same.empty() ? handles.size() : same[handles.size()];
      if (k < handles.size()) {
        handles.push_back(handles[k]);
        reads.push_back(reads[k]);
      } else if (arg.is_ref) {
        handles.push_back(VariableV2(shape, dtype, {.name = arg.name}));
        reads.push_back(handles[k]);
        if (arg.name != uninitialized) {
          inits.push_back(Assign(handles[k], input(DoubleTensor(shape, variables[k]))));
        }
      } else {
        handles.push_back(VarHandleOp(dtype, shape, {.name = arg.name}));
        reads.push_back(ReadVariableOp(handles[k], dtype));
        if (arg.name != uninitialized) {
          inits.push_back(AssignVariableOp(handles[k], input(DoubleTensor(shape, variables[k]))));
        }
      }
      node.Input(handles.back());
    } else if (arg.name == "grad" || arg.name == "delta") {
      node.Input(input(gradient));
    } else if (arg.name == "indices") {
      node.Input(Const(indices));
    } else if (arg.name == not_scalar) {
      node.Input(input(Tensor::Vector<double>({1, 2})));
    } else if (arg.name == "global_step") {
      node.Input(Const(Tensor::Scalar(static_cast<int64_t>(scalars.at(arg.name)))));
    } else {
      node.Input(input(Tensor::Scalar(scalars.at(arg.name))));
    }
  }
  if (!optimizer.flag.empty()) node.Attr(optimizer.flag, flag);
  const Output step(node.Finish(), 0);
  if (!inits.empty()) TENON_RETURN_IF_ERROR(s.Run({}, inits).status());
  Status status;
  for (int i = 0; i < times && status.ok(); ++i) status = s.Run({}, {step}).status();
  if (!uninitialized.empty()) return status;
  for (size_t k = 0; k < reads.size(); ++k) {
    variables[k] = Numbers(s.Value(Cast(reads[k], DType::kDouble)));
  }
  return status;
}

}  // namespace tenon::testing
