// SPDX-License-Identifier: Apache-2.0
#include "core/flow_kind.h"

#include "core/hash_map.h"

namespace tenon {

FlowKind FlowKindOf(const Node& node) {
  static const auto* const kinds = new StringViewMap<FlowKind>{
      {"Switch", FlowKind::kSwitch},
      {"RefSwitch", FlowKind::kSwitch},
      {"_SwitchN", FlowKind::kSwitch},
      {"Merge", FlowKind::kMerge},
      {"RefMerge", FlowKind::kMerge},
      {"Enter", FlowKind::kEnter},
      {"RefEnter", FlowKind::kEnter},
      {"Exit", FlowKind::kExit},
      {"RefExit", FlowKind::kExit},
      {"NextIteration", FlowKind::kNextIteration},
      {"RefNextIteration", FlowKind::kNextIteration},
      {"ControlTrigger", FlowKind::kControlTrigger},
      {"_Send", FlowKind::kTransfer},
      {"_Recv", FlowKind::kTransfer},
      {"_SendToPeer", FlowKind::kTransfer},
      {"_RecvFromPeer", FlowKind::kTransfer},
      {"_HostSend", FlowKind::kTransfer},
      {"_HostRecv", FlowKind::kTransfer},
  };
  const auto found = kinds->find(node.op());
  if (found == kinds->end()) return FlowKind::kPlain;
  if (found->second == FlowKind::kEnter && node.attrs().GetOr<bool>("is_constant", false)) {
    return FlowKind::kConstantEnter;
  }
  return found->second;
}

}  // namespace tenon
