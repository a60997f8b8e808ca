// SPDX-License-Identifier: Apache-2.0
//
// The protocol is TensorFlow's: every message and enum of ours agrees with the recorded table, and
// the services answer at TensorFlow's paths.
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "proto/checkpoint_state.pb.h"
#include "proto/control_flow.pb.h"
#include "proto/event.pb.h"
#include "proto/example.pb.h"
#include "proto/graph.pb.h"
#include "proto/master_service.pb.h"
#include "proto/queue_runner.pb.h"
#include "proto/saved_model.pb.h"
#include "proto/saved_tensor_slice.pb.h"
#include "proto/status_payload.pb.h"
#include "proto/tensor.pb.h"
#include "proto/tensor_bundle.pb.h"
#include "proto/variable.pb.h"
#include "proto/worker_service.pb.h"
#include "tests/proto/descriptor_compare.h"

namespace tenon::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::ServiceDescriptor;
using google::protobuf::TextFormat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The files below proto/, found in the generated pool. The linker drops the object files of an
// archive that nothing names, so the roots of the import graph are named here.
std::vector<const FileDescriptor*> OurFiles() {
  const google::protobuf::Message* roots[] = {&CheckpointState::default_instance(),
                                              &ControlFlowContextDef::default_instance(),
                                              &Event::default_instance(),
                                              &Example::default_instance(),
                                              &QueueRunnerDef::default_instance(),
                                              &SavedModel::default_instance(),
                                              &SavedTensorSlices::default_instance(),
                                              &GrpcPayloadContainer::default_instance(),
                                              &BundleEntryProto::default_instance(),
                                              &VariableDef::default_instance()};
  for (const auto* root : roots) EXPECT_NE(root->GetDescriptor(), nullptr);
  EXPECT_NE(descriptor_table_proto_2fmaster_5fservice_2eproto.filename, nullptr);
  EXPECT_NE(descriptor_table_proto_2fworker_5fservice_2eproto.filename, nullptr);

  const char* source = std::getenv("TENON_SOURCE_DIR");
  std::vector<const FileDescriptor*> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(source ? source : ".") + "/proto")) {
    if (entry.path().extension() != ".proto") continue;
    const std::string name = "proto/" + entry.path().filename().string();
    // Tenon's own, and gRPC's; TensorFlow has none like them.
    if (name == "proto/cluster_service.proto" || name == "proto/peer_service.proto" ||
        name == "proto/registration_service.proto" || name == "proto/key_value_service.proto" ||
        name == "proto/health.proto" || name == "proto/table.proto") {
      continue;
    }
    const FileDescriptor* file = DescriptorPool::generated_pool()->FindFileByName(name);
    EXPECT_NE(file, nullptr) << name << " is not linked: name one of its messages in OurFiles";
    if (file) files.push_back(file);
  }
  return files;
}

// Calls visit_message for every message of the file and visit_enum for every enum, nested included.
template <typename OnMessage, typename OnEnum>
void VisitMessage(const Descriptor& message, OnMessage on_message, OnEnum on_enum) {
  if (message.options().map_entry()) return;
  on_message(message);
  for (int i = 0; i < message.enum_type_count(); ++i) on_enum(*message.enum_type(i));
  for (int i = 0; i < message.nested_type_count(); ++i) {
    VisitMessage(*message.nested_type(i), on_message, on_enum);
  }
}

template <typename OnMessage, typename OnEnum>
void VisitFile(const FileDescriptor& file, OnMessage on_message, OnEnum on_enum) {
  for (int i = 0; i < file.enum_type_count(); ++i) on_enum(*file.enum_type(i));
  for (int i = 0; i < file.message_type_count(); ++i) {
    VisitMessage(*file.message_type(i), on_message, on_enum);
  }
}

std::vector<std::string> MethodPaths(const ServiceDescriptor& service) {
  std::vector<std::string> paths;
  for (int i = 0; i < service.method_count(); ++i) {
    paths.push_back("/" + service.full_name() + "/" + service.method(i)->name());
  }
  return paths;
}

// The differences of `message M { <fields> }`, given as a DescriptorProto in text form, where M is
// one of TensorFlow's messages.
std::vector<std::string> DifferencesOf(const std::string& message) {
  FileDescriptorProto file;
  EXPECT_TRUE(TextFormat::ParseFromString(
      "name: 'x.proto' package: 'tenon' syntax: 'proto3' message_type { " + message + " }", &file));
  DescriptorPool pool;
  const FileDescriptor* built = pool.BuildFile(file);
  EXPECT_NE(built, nullptr);
  return CompareMessage(*built->message_type(0), LoadGoldenFields());
}

TEST(DescriptorTest, EveryMessageAndEnumAgreesWithTensorFlow) {
  const nlohmann::json golden = LoadGoldenFields();
  int messages = 0, enums = 0;
  for (const FileDescriptor* file : OurFiles()) {
    VisitFile(
        *file,
        [&](const Descriptor& message) {
          ++messages;
          EXPECT_THAT(CompareMessage(message, golden), IsEmpty());
        },
        [&](const EnumDescriptor& e) {
          ++enums;
          EXPECT_THAT(CompareEnum(e, golden), IsEmpty());
        });
  }
  EXPECT_GE(messages, 190);
  EXPECT_GE(enums, 19);
}

TEST(DescriptorTest, EveryEnumHasAllOfTensorFlowsValues) {
  const nlohmann::json golden = LoadGoldenFields();
  for (const FileDescriptor* file : OurFiles()) {
    VisitFile(
        *file, [](const Descriptor&) {},
        [&](const EnumDescriptor& e) {
          const std::string name = "tensorflow." + e.full_name().substr(sizeof("tenon.") - 1);
          EXPECT_EQ(static_cast<size_t>(e.value_count()), golden["enums"][name].size()) << name;
        });
  }
}

TEST(DescriptorTest, MessagesAreInPackageTenonAndServicesInPackageTensorflow) {
  for (const FileDescriptor* file : OurFiles()) {
    if (file->service_count() > 0) {
      EXPECT_EQ(file->package(), "tensorflow") << file->name();
      EXPECT_EQ(file->message_type_count(), 0) << file->name();
    } else {
      EXPECT_THAT(file->package(), ::testing::AnyOf("tenon", "tenon.error")) << file->name();
    }
  }
}

TEST(DescriptorTest, MasterServiceAnswersAtTensorFlowsPaths) {
  OurFiles();
  const auto* service =
      DescriptorPool::generated_pool()->FindServiceByName("tensorflow.MasterService");
  ASSERT_NE(service, nullptr);
  EXPECT_THAT(
      MethodPaths(*service),
      ElementsAre(
          "/tensorflow.MasterService/CreateSession", "/tensorflow.MasterService/ExtendSession",
          "/tensorflow.MasterService/PartialRunSetup", "/tensorflow.MasterService/RunStep",
          "/tensorflow.MasterService/CloseSession", "/tensorflow.MasterService/ListDevices",
          "/tensorflow.MasterService/Reset", "/tensorflow.MasterService/MakeCallable",
          "/tensorflow.MasterService/RunCallable", "/tensorflow.MasterService/ReleaseCallable"));
}

TEST(DescriptorTest, WorkerServiceAnswersAtTensorFlowsPaths) {
  OurFiles();
  const auto* service =
      DescriptorPool::generated_pool()->FindServiceByName("tensorflow.WorkerService");
  ASSERT_NE(service, nullptr);
  EXPECT_THAT(
      MethodPaths(*service),
      ElementsAre(
          "/tensorflow.WorkerService/GetStatus", "/tensorflow.WorkerService/CreateWorkerSession",
          "/tensorflow.WorkerService/DeleteWorkerSession",
          "/tensorflow.WorkerService/RegisterGraph", "/tensorflow.WorkerService/DeregisterGraph",
          "/tensorflow.WorkerService/RunGraph", "/tensorflow.WorkerService/CleanupGraph",
          "/tensorflow.WorkerService/CleanupAll", "/tensorflow.WorkerService/RecvTensor",
          "/tensorflow.WorkerService/RecvBuf", "/tensorflow.WorkerService/Logging",
          "/tensorflow.WorkerService/Tracing", "/tensorflow.WorkerService/CompleteGroup",
          "/tensorflow.WorkerService/CompleteInstance", "/tensorflow.WorkerService/GetStepSequence",
          "/tensorflow.WorkerService/MarkRecvFinished"));
}

TEST(DescriptorTest, EveryMethodTakesItsOwnRequestAndResponseAndIsUnary) {
  for (const FileDescriptor* file : OurFiles()) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int i = 0; i < file->service(s)->method_count(); ++i) {
        const auto& method = *file->service(s)->method(i);
        EXPECT_EQ(method.input_type()->full_name(), "tenon." + method.name() + "Request");
        EXPECT_EQ(method.output_type()->full_name(), "tenon." + method.name() + "Response");
        EXPECT_FALSE(method.client_streaming() || method.server_streaming()) << method.name();
      }
    }
  }
}

constexpr char kRightMessage[] = R"(
  name: 'ResetRequest'
  field { name: 'container' number: 1 label: LABEL_REPEATED type: TYPE_STRING }
  field { name: 'device_filters' number: 2 label: LABEL_REPEATED type: TYPE_STRING })";

TEST(CompareMessageTest, FindsNoDifferenceInARightMessage) {
  EXPECT_THAT(DifferencesOf(kRightMessage), IsEmpty());
}

TEST(CompareMessageTest, FindsAWrongName) {
  EXPECT_THAT(DifferencesOf(R"(name: 'GraphDef' reserved_range { start: 1 end: 6 }
      reserved_name: ['node', 'library', 'version', 'versions', 'debug_info'])"),
              IsEmpty());
  EXPECT_THAT(DifferencesOf(R"(name: 'CleanupGraphRequest'
      field { name: 'step' number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 })"),
              ElementsAre(HasSubstr("field 1: name is 'step', wanted 'step_id'")));
}

TEST(CompareMessageTest, FindsAWrongTypeAndAWrongLabel) {
  EXPECT_THAT(DifferencesOf(R"(name: 'CleanupGraphRequest'
      field { name: 'step_id' number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 })"),
              ElementsAre(HasSubstr("field 1: type is 'int32', wanted 'int64'")));
  EXPECT_THAT(DifferencesOf(R"(name: 'CleanupGraphRequest'
      field { name: 'step_id' number: 1 label: LABEL_REPEATED type: TYPE_INT64 })"),
              ElementsAre(HasSubstr("field 1: type is 'rep int64', wanted 'int64'")));
}

TEST(CompareMessageTest, FindsAnInventedFieldAndALackingOne) {
  EXPECT_THAT(DifferencesOf(R"(name: 'ExtendSessionResponse'
      field { name: 'new_graph_version' number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 })"),
              ElementsAre(HasSubstr("field 1: name is 'new_graph_version', wanted 'no such field'"),
                          HasSubstr("field 4: name is 'neither there nor reserved")));
}

TEST(CompareMessageTest, TakesFieldsOfOurOwnByTheirHighNumbers) {
  const std::string right = R"(name: 'CleanupGraphRequest'
      field { name: 'step_id' number: 1 label: LABEL_OPTIONAL type: TYPE_INT64 })";
  EXPECT_THAT(DifferencesOf(right + R"(
      field { name: 'own' number: 1000 label: LABEL_OPTIONAL type: TYPE_INT64 })"),
              IsEmpty());
  EXPECT_THAT(DifferencesOf(right + R"(
      field { name: 'own' number: 999 label: LABEL_OPTIONAL type: TYPE_INT64 })"),
              ElementsAre(HasSubstr("field 999: name is 'own', wanted 'no such field'")));
}

TEST(CompareMessageTest, FindsAFieldOutsideItsOneof) {
  EXPECT_THAT(DifferencesOf(R"(name: 'FullTypeDef' reserved_range { start: 1 end: 4 }
      reserved_name: ['type_id', 'args', 's']
      field { name: 'i' number: 4 label: LABEL_OPTIONAL type: TYPE_INT64 })"),
              ElementsAre(HasSubstr("field 4: oneof is '', wanted 'attr'")));
}

TEST(CompareMessageTest, FindsANumberTensorFlowReserves) {
  EXPECT_THAT(DifferencesOf(R"(name: 'CompleteInstanceResponse'
      field { name: 'instance_key' number: 1 label: LABEL_OPTIONAL type: TYPE_INT32 }
      field { name: 'source_rank' number: 2 label: LABEL_OPTIONAL type: TYPE_INT32 })"),
              ElementsAre(HasSubstr("field 3: number is 'not reserved'")));
}

TEST(CompareMessageTest, FindsAMessageTensorFlowDoesNotHave) {
  EXPECT_THAT(DifferencesOf("name: 'Invented'"), ElementsAre(HasSubstr("has no")));
}

TEST(TensorProtoTest, WritesTensorFlowsBytes) {
  TensorProto compressed;
  compressed.set_dtype(DT_FLOAT);
  compressed.mutable_tensor_shape()->add_dim()->set_size(2);
  compressed.mutable_tensor_shape()->add_dim()->set_size(3);
  compressed.add_float_val(1.0f);
  const std::string bytes(
      "\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x03\x2a\x04\x00\x00\x80\x3f", 18);
  EXPECT_EQ(compressed.SerializeAsString(), bytes);
}

TEST(GraphDefTest, KeepsFieldsItDoesNotKnow) {
  const std::string bytes("\x0a\x03\x0a\x01\x61\xfa\x3e\x03new", 11);  // node { name: "a" }, 1007
  GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(bytes));
  EXPECT_EQ(graph.node(0).name(), "a");
  EXPECT_EQ(graph.SerializeAsString(), bytes);
}

}  // namespace
}  // namespace tenon::testing
