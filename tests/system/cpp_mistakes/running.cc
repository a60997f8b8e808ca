// SPDX-License-Identifier: Apache-2.0
#include "running.h"

#include <map>

namespace {

using namespace tenon;

struct Model {
  Output x = Placeholder(DType::kFloat, {2}, {.name = "x"});
  Variable w{"w", 2.0f};
  Output y = Mul(w, x, {.name = "y"});
  Output count = Size(x, {.name = "count"});
  Node* init = GlobalVariablesInitializer();
};
using Running = Status(Session& session, const Model& m);

const std::vector<float> kTwo = {1, 2};

const std::map<std::string, Running*> kRunning = {
    {"feeding an unknown name",
     [](Session& s, const Model& m) {
       return s.Run({{"z", kTwo}}, {m.y}).status();
     }},
    {"feeding a name with a slip",
     [](Session& s, const Model& m) {
       return s.Run({{"cuont", kTwo}}, {m.y}).status();
     }},
    {"fetching a name with a slip",
     [](Session& s, const Model&) { return s.Run({}, {"cuont"}).status(); }},
    {"running a name with a slip",
     [](Session& s, const Model&) { return s.Run({}, {}, {"inti"}).status(); }},
    {"a device that there is not",
     [](Session& s, const Model& m) -> Status {
       const DeviceScope far("/device:FPGA:0");
       Neg(m.y, {.name = "far"});
       return s.Extend(*CurrentBuilding().graph);
     }},
    {"feeding an output that there is not",
     [](Session& s, const Model& m) {
       return s.Run({{"x:1", kTwo}}, {m.y}).status();
     }},
    {"feeding a double",
     [](Session& s, const Model& m) {
       return s.Run({{m.x, std::vector<double>{1, 2}}}, {m.y}).status();
     }},
    {"feeding a wrong shape",
     [](Session& s, const Model& m) {
       return s.Run({{m.x, std::vector<float>{1, 2, 3}}}, {m.y}).status();
     }},
    {"feeding a prepared step a wrong shape",
     [](Session& s, const Model& m) -> Status {
       TENON_ASSIGN_OR_RETURN(const auto step, s.Prepare({m.x}, {m.y}));
       std::vector<Tensor> fetched;
       return step->Run({Tensor::Vector<float>({1, 2, 3})}, &fetched);
     }},
    {"feeding a prepared step too little",
     [](Session& s, const Model& m) -> Status {
       TENON_ASSIGN_OR_RETURN(const auto step, s.Prepare({m.x}, {m.y}));
       std::vector<Tensor> fetched;
       return step->Run({}, &fetched);
     }},
    {"calling without the feed",
     [](Session& s, const Model& m) -> Status {
       TENON_ASSIGN_OR_RETURN(const auto step, s.Prepare<Tensor>({m.x}, m.y));
       return step().status();
     }},
    {"feeding twice",
     [](Session& s, const Model& m) {
       return s.Run({{m.x, kTwo}, {m.x, kTwo}}, {m.y}).status();
     }},
    {"feeding what was not built",
     [](Session& s, const Model& m) {
       return s.Run({{Output(), kTwo}}, {m.y}).status();
     }},
    {"not feeding", [](Session& s, const Model& m) { return s.Run({}, {m.y}).status(); }},
    {"fetching an unknown name",
     [](Session& s, const Model& m) {
       return s.Run({{m.x, kTwo}}, {"z"}).status();
     }},
    {"fetching an output that there is not",
     [](Session& s, const Model& m) {
       return s.Run({{m.x, kTwo}}, {"y:7"}).status();
     }},
    {"fetching what was not built",
     [](Session& s, const Model&) { return s.Run({}, {Output()}).status(); }},
    {"fetching as a number what was not built",
     [](Session& s, const Model&) { return s.Run<float>({}, Output()).status(); }},
    {"preparing what was not built",
     [](Session& s, const Model&) { return s.Prepare({}, {Output()}).status(); }},
    {"running what was not built",
     [](Session& s, const Model&) { return s.Run({}, {}, {FailedNode()}).status(); }},
    {"running an unknown name",
     [](Session& s, const Model&) { return s.Run({}, {}, {"z"}).status(); }},
    {"fetching a node without output",
     [](Session& s, const Model& m) { return s.Run({}, {m.init}).status(); }},
    {"an int as a float",
     [](Session& s, const Model& m) {
       return s.Run<float>({{m.x, kTwo}}, m.count).status();
     }},
    {"ints as floats",
     [](Session& s, const Model& m) {
       return s.Run<std::vector<float>>({{m.x, kTwo}}, m.count).status();
     }},
    {"a vector as a float",
     [](Session& s, const Model& m) -> Status {
       TENON_RETURN_IF_ERROR(s.Run({}, {}, {m.init}).status());
       return s.Run<float>({{m.x, kTwo}}, m.y).status();
     }},
    {"an int as a float, prepared",
     [](Session& s, const Model& m) -> Status {
       TENON_ASSIGN_OR_RETURN(const auto step, s.Prepare<float>({m.x}, m.count));
       return step(Tensor::Vector(kTwo)).status();
     }},
    {"a variable that was not initialised",
     [](Session& s, const Model& m) {
       return s.Run({{m.x, kTwo}}, {m.y}).status();
     }},
};

}  // namespace

std::vector<std::string> RunningMistakes() {
  std::vector<std::string> names;
  for (const auto& [name, make] : kRunning) names.push_back(name);
  return names;
}

tenon::Status MakeRunningMistake(const tenon::Graph& graph, const std::string& name) {
  const Model model;
  TENON_ASSIGN_OR_RETURN(const auto session, MakeLocalSession(graph));
  return kRunning.at(name)(*session, model);
}
