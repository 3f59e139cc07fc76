/**
 * Builds a classic-BPF program for `bwrap --seccomp` against the system calls that no application or build needs and that have enabled
 * sandbox escapes. Denied calls return EPERM, those with a common fallback ENOSYS, so that callers use it. Returns undefined for processors
 * without a system call table here.
 */
export function seccompProgram(arch: NodeJS.Architecture = process.arch): Buffer | undefined {
  const machine = machines[arch as keyof typeof machines];
  return machine && assemble(program(machine));
}

// seccomp(2), linux/audit.h, linux/filter.h
const killProcess = 0x80000000;
const allow = 0x7fff0000;
const refuse = 0x00050000;
const errno = { EPERM: 1, ENOSYS: 38, EAFNOSUPPORT: 97 };
const x32Bit = 0x40000000;
const offsetOf = { number: 0, arch: 4, firstArgument: 16, secondArgument: 24 };
// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
const newNamespaces = 0x7e020000;
const terminalInjection = { TIOCSTI: 0x5412, TIOCLINUX: 0x541c };
const socketFamilies = { AF_UNIX: 1, AF_INET: 2, AF_INET6: 10, AF_NETLINK: 16 };

interface Machine {
  readonly audit: number;
  readonly hasX32: boolean;
  readonly denied: readonly number[];
  readonly absent: readonly number[];
  readonly clone: number;
  readonly socket: number;
  readonly ioctl: number;
}

// Same numbers on every processor: the new mount API (428-433, 442, 467), pidfd_getfd, quotactl_fd.
const deniedEverywhere = [428, 429, 430, 431, 432, 433, 438, 442, 443, 467];
// io_uring_setup, io_uring_enter, io_uring_register, clone3. clone3 hides its flags from a filter; glibc falls back to clone.
const absentEverywhere = [425, 426, 427, 435];

const machines: { readonly x64: Machine; readonly arm64: Machine } = {
  x64: {
    audit: 0xc000003e,
    hasX32: true,
    clone: 56,
    socket: 41,
    ioctl: 16,
    absent: absentEverywhere,
    denied: [
      ...deniedEverywhere,
      ...[101, 310, 311, 312, 135], // ptrace, process_vm_readv, process_vm_writev, kcmp, personality
      ...[248, 249, 250], // add_key, request_key, keyctl
      ...[321, 323, 298, 300, 304, 212], // bpf, userfaultfd, perf_event_open, fanotify_init, open_by_handle_at, lookup_dcookie
      ...[165, 166, 155, 161, 272, 308], // mount, umount2, pivot_root, chroot, unshare, setns
      ...[246, 320, 174, 175, 313, 176, 177, 178], // kexec_load, kexec_file_load and the module calls
      ...[103, 163, 167, 168, 169, 179, 180, 153], // syslog, acct, swapon, swapoff, reboot, quotactl, nfsservctl, vhangup
      ...[164, 227, 305, 170, 171], // settimeofday, clock_settime, clock_adjtime, sethostname, setdomainname
      ...[172, 173, 134, 136, 139, 154, 156], // iopl, ioperm, uselib, ustat, sysfs, modify_ldt, _sysctl
    ],
  },
  arm64: {
    audit: 0xc00000b7,
    hasX32: false,
    clone: 220,
    socket: 198,
    ioctl: 29,
    absent: absentEverywhere,
    denied: [
      ...deniedEverywhere,
      ...[117, 270, 271, 272, 92], // ptrace, process_vm_readv, process_vm_writev, kcmp, personality
      ...[217, 218, 219], // add_key, request_key, keyctl
      ...[280, 282, 241, 262, 265, 18], // bpf, userfaultfd, perf_event_open, fanotify_init, open_by_handle_at, lookup_dcookie
      ...[40, 39, 41, 51, 97, 268], // mount, umount2, pivot_root, chroot, unshare, setns
      ...[104, 294, 105, 273, 106], // kexec_load, kexec_file_load and the module calls
      ...[116, 89, 224, 225, 142, 60, 42, 58], // syslog, acct, swapon, swapoff, reboot, quotactl, nfsservctl, vhangup
      ...[170, 112, 266, 161, 162], // settimeofday, clock_settime, clock_adjtime, sethostname, setdomainname
    ],
  },
};

/** One instruction. A jump goes to its label if its test holds, else to the next instruction. */
interface Instruction {
  readonly code: number;
  readonly value: number;
  readonly to?: string;
}
type Step = Instruction | { readonly label: string };

const load = (offset: number): Step => ({ code: 0x20, value: offset });
const answer = (value: number): Step => ({ code: 0x06, value });
const ifEqual = (value: number, to: string): Step => ({ code: 0x15, value, to });
const ifAtLeast = (value: number, to: string): Step => ({ code: 0x35, value, to });
const ifAnyBit = (value: number, to: string): Step => ({ code: 0x45, value, to });
const at = (label: string): Step => ({ label });

function program(machine: Machine): Step[] {
  return [
    load(offsetOf.arch),
    ifEqual(machine.audit, "native"),
    answer(killProcess),
    at("native"),
    load(offsetOf.number),
    ...(machine.hasX32 ? [ifAtLeast(x32Bit, "absent")] : []),
    ifEqual(machine.clone, "clone"),
    ifEqual(machine.socket, "socket"),
    ifEqual(machine.ioctl, "ioctl"),
    ...machine.absent.map((number) => ifEqual(number, "absent")),
    ...machine.denied.map((number) => ifEqual(number, "denied")),
    answer(allow),
    at("clone"),
    load(offsetOf.firstArgument),
    ifAnyBit(newNamespaces, "denied"),
    answer(allow),
    at("socket"),
    load(offsetOf.firstArgument),
    ...Object.values(socketFamilies).map((family) => ifEqual(family, "allowed")),
    answer(refuse | errno.EAFNOSUPPORT),
    at("ioctl"),
    load(offsetOf.secondArgument),
    ...Object.values(terminalInjection).map((request) => ifEqual(request, "denied")),
    at("allowed"),
    answer(allow),
    at("denied"),
    answer(refuse | errno.EPERM),
    at("absent"),
    answer(refuse | errno.ENOSYS),
  ];
}

/** Encodes struct sock_filter: u16 code, u8 jump-if-true, u8 jump-if-false, u32 value, in the machine's (little-endian) order. */
function assemble(steps: readonly Step[]): Buffer {
  const labels = new Map<string, number>();
  let count = 0;
  for (const step of steps) {
    if ("label" in step) labels.set(step.label, count);
    else count += 1;
  }
  const bytes = Buffer.alloc(count * 8);
  const instructions = steps.filter((step): step is Instruction => !("label" in step));
  instructions.forEach((step, index) => {
    const jump = step.to === undefined ? 0 : (labels.get(step.to) as number) - index - 1;
    bytes.writeUInt16LE(step.code, index * 8);
    bytes.writeUInt8(jump, index * 8 + 2);
    bytes.writeUInt32LE(step.value >>> 0, index * 8 + 4);
  });
  return bytes;
}
