//===- HostSwitch.h - from one stack to another -----------------*- C++ -*-===//
//
// A kernel with barriers changes stacks some million times a second, which
// rules out ucontext (two system calls a switch) wherever a dozen lines of
// assembly do. What a switch must keep is what the ABI says a call keeps.
//
// It leaves by a jump and not a return: processors predict a return to go where
// the last call came from, and here it never does. Jumps are predicted by where
// they went before, which is right; a switch takes a quarter of the time.
//
//===----------------------------------------------------------------------===//

#ifndef MEMPLAN_RUNTIME_HOSTSWITCH_H
#define MEMPLAN_RUNTIME_HOSTSWITCH_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))
#define MEMPLAN_ASSEMBLY_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace memplan::rt::host {

#ifdef MEMPLAN_ASSEMBLY_SWITCH

// A comdat, as an inline function would be: any number of object files may hold
// it, and one is kept.
#define MEMPLAN_ASM_FUNCTION(NAME, TYPE)                                       \
  ".pushsection .text." NAME ",\"axG\"," TYPE "progbits," NAME ",comdat\n"     \
  ".weak " NAME "\n"                                                           \
  ".hidden " NAME "\n"                                                         \
  ".type " NAME "," TYPE "function\n"                                          \
  ".p2align 4\n" NAME ":\n"

#if defined(__x86_64__)
asm(MEMPLAN_ASM_FUNCTION("memplan_rt_switch",
                         "@") "  pushq %rbp\n"
                              "  pushq %rbx\n"
                              "  pushq %r12\n"
                              "  pushq %r13\n"
                              "  pushq %r14\n"
                              "  pushq %r15\n"
                              "  movq %rsp, (%rdi)\n"
                              "  movq %rsi, %rsp\n"
                              "  popq %r15\n"
                              "  popq %r14\n"
                              "  popq %r13\n"
                              "  popq %r12\n"
                              "  popq %rbx\n"
                              "  popq %rbp\n"
                              "  popq %rcx\n"
                              "  jmpq *%rcx\n"
                              ".size memplan_rt_switch, . - memplan_rt_switch\n"
                              ".popsection\n");
inline constexpr size_t kReturnWord = 6; // after the saved registers
inline constexpr size_t kFrameWords = 8; // `entry` returns to null
#else
asm(MEMPLAN_ASM_FUNCTION("memplan_rt_switch",
                         "%") "  sub sp, sp, #160\n"
                              "  stp x19, x20, [sp, #0]\n"
                              "  stp x21, x22, [sp, #16]\n"
                              "  stp x23, x24, [sp, #32]\n"
                              "  stp x25, x26, [sp, #48]\n"
                              "  stp x27, x28, [sp, #64]\n"
                              "  stp x29, x30, [sp, #80]\n"
                              "  stp d8, d9, [sp, #96]\n"
                              "  stp d10, d11, [sp, #112]\n"
                              "  stp d12, d13, [sp, #128]\n"
                              "  stp d14, d15, [sp, #144]\n"
                              "  mov x9, sp\n"
                              "  str x9, [x0]\n"
                              "  mov sp, x1\n"
                              "  ldp x19, x20, [sp, #0]\n"
                              "  ldp x21, x22, [sp, #16]\n"
                              "  ldp x23, x24, [sp, #32]\n"
                              "  ldp x25, x26, [sp, #48]\n"
                              "  ldp x27, x28, [sp, #64]\n"
                              "  ldp x29, x30, [sp, #80]\n"
                              "  ldp d8, d9, [sp, #96]\n"
                              "  ldp d10, d11, [sp, #112]\n"
                              "  ldp d12, d13, [sp, #128]\n"
                              "  ldp d14, d15, [sp, #144]\n"
                              "  add sp, sp, #160\n"
                              "  mov x16, x30\n"
                              "  br x16\n"
                              ".size memplan_rt_switch, . - memplan_rt_switch\n"
                              ".popsection\n");
inline constexpr size_t kReturnWord = 11; // that of x30
inline constexpr size_t kFrameWords = 20;
#endif

extern "C"
    __attribute__((visibility("hidden"))) void memplan_rt_switch(void **save,
                                                                 void *load);

/// A point where execution can go on: a stack pointer, all else is on the
/// stack.
struct Continuation {
  void *stackPointer = nullptr;
};

/// Makes `fresh` start `entry` on the stack that ends at `stackTop`. `entry`
/// must not return.
inline void prepare(Continuation &fresh, char *, char *stackTop,
                    void (*entry)()) {
  stackTop -= reinterpret_cast<uintptr_t>(stackTop) % 16;
  char *frame = stackTop - kFrameWords * sizeof(void *);
  std::memset(frame, 0, kFrameWords * sizeof(void *));
  const auto address = reinterpret_cast<uintptr_t>(entry);
  std::memcpy(frame + kReturnWord * sizeof address, &address, sizeof address);
  fresh.stackPointer = frame;
}

inline void switchTo(Continuation &from, const Continuation &to) {
  memplan_rt_switch(&from.stackPointer, to.stackPointer);
}

#else

struct Continuation {
  ucontext_t context;
};

inline void prepare(Continuation &fresh, char *stackBottom, char *stackTop,
                    void (*entry)()) {
  getcontext(&fresh.context);
  fresh.context.uc_stack.ss_sp = stackBottom;
  fresh.context.uc_stack.ss_size = static_cast<size_t>(stackTop - stackBottom);
  fresh.context.uc_link = nullptr;
  makecontext(&fresh.context, entry, 0);
}

inline void switchTo(Continuation &from, Continuation &to) {
  swapcontext(&from.context, &to.context);
}

#endif

} // namespace memplan::rt::host

#endif // MEMPLAN_RUNTIME_HOSTSWITCH_H
