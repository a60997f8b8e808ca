// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether this is a build with AddressSanitizer or ThreadSanitizer: 0 or 1, for #if and for code.
#if defined(__has_feature)
#define TENON_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#define TENON_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define TENON_ADDRESS_SANITIZER 1
#else
#define TENON_ADDRESS_SANITIZER 0
#endif
#ifdef __SANITIZE_THREAD__
#define TENON_THREAD_SANITIZER 1
#else
#define TENON_THREAD_SANITIZER 0
#endif
#endif

namespace tenon {

/// Whether this build runs several times slower, and takes more memory, than the released one.
constexpr bool kSanitized = TENON_ADDRESS_SANITIZER || TENON_THREAD_SANITIZER;

}  // namespace tenon
