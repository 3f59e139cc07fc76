import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seccompProgram } from "./seccomp.ts";

const allow = 0x7fff0000;
const kill = 0x80000000;
const refuse = (errno: number) => 0x00050000 | errno;
const audit = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** Evaluates the program for one system call, as the kernel would. */
function decide(arch: "x64" | "arm64", number: number, args: readonly number[] = [], machine = audit[arch]): number {
  const program = seccompProgram(arch) as Buffer;
  const data = new Map([[0, number], [4, machine], ...args.map((value, index) => [16 + 8 * index, value] as const)]);
  let accumulator = 0;
  for (let index = 0; ; index += 1) {
    const [code, value] = [program.readUInt16LE(index * 8), program.readUInt32LE(index * 8 + 4)];
    const jumps = { 0x15: accumulator === value, 0x35: accumulator >= value, 0x45: (accumulator & value) !== 0 };
    if (code === 0x20) accumulator = data.get(value) ?? 0;
    else if (code === 0x06) return value;
    else index += program.readUInt8(index * 8 + (jumps[code as 0x15] ? 2 : 3));
  }
}

describe("the seccomp program", () => {
  for (const [arch, calls] of [
    [
      "x64",
      { read: 0, clone: 56, clone3: 435, socket: 41, ioctl: 16, mount: 165, unshare: 272, ptrace: 101, bpf: 321 },
    ],
    [
      "arm64",
      { read: 63, clone: 220, clone3: 435, socket: 198, ioctl: 29, mount: 40, unshare: 97, ptrace: 117, bpf: 280 },
    ],
  ] as const) {
    it(`lets ordinary calls pass and refuses those that break out (${arch})`, () => {
      assert.equal(decide(arch, calls.read), allow);
      for (const call of [calls.mount, calls.unshare, calls.ptrace, calls.bpf])
        assert.equal(decide(arch, call), refuse(1));
      assert.equal(decide(arch, calls.clone3), refuse(38));
    });
    it(`lets processes and threads be made, but no namespaces (${arch})`, () => {
      assert.equal(decide(arch, calls.clone, [0x3d0f00]), allow);
      assert.equal(decide(arch, calls.clone, [0x10000011]), refuse(1));
    });
    it(`knows only the families of sockets that applications use, and no terminal injection (${arch})`, () => {
      for (const family of [1, 2, 10, 16]) assert.equal(decide(arch, calls.socket, [family]), allow);
      assert.equal(decide(arch, calls.socket, [38]), refuse(97));
      assert.equal(decide(arch, calls.ioctl, [0, 0x5401]), allow);
      assert.equal(decide(arch, calls.ioctl, [0, 0x5412]), refuse(1));
    });
    it(`kills calls of another machine's numbering (${arch})`, () => {
      assert.equal(decide(arch, calls.read, [], 0x40000003), kill);
    });
  }

  it("refuses the second numbering of x86-64", () => {
    assert.equal(decide("x64", 0x40000000 + 165), refuse(38));
  });

  it("does not exist for processors it has no table for", () => {
    assert.equal(seccompProgram("riscv64"), undefined);
  });
});
