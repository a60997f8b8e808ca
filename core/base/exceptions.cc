// SPDX-License-Identifier: Apache-2.0
#include "core/base/exceptions.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <system_error>

namespace tenon {

Status StatusOfException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory");
  } catch (const std::length_error& e) {
    return ResourceExhausted("more elements than a container can hold: ", e.what());
  } catch (const std::system_error& e) {
    return ResourceExhausted("the system refused: ", e.what());
  } catch (const std::exception& e) {
    return Internal("unexpected exception: ", e.what());
  } catch (...) {
    return Internal("unexpected exception of an unknown kind");
  }
}

}  // namespace tenon
