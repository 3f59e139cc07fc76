import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { attempt } from "./attempt.ts";

/** A TCP port that a process listens on. On `loopback`, only processes in its own network namespace reach it. */
export interface ListeningPort {
  readonly port: number;
  readonly loopback: boolean;
}

/** Returns the TCP ports that these processes listen on, each once. Ports that the kernel hides are missing. */
export function listeningPorts(pids: readonly number[]): readonly ListeningPort[] {
  const found = new Map<string, ListeningPort>();
  for (const pid of pids) {
    const own = socketsOf(pid);
    if (own.size === 0) continue;
    for (const { inode, ...port } of [...listeners(`/proc/${pid}/net/tcp`), ...listeners(`/proc/${pid}/net/tcp6`)]) {
      if (own.has(inode)) found.set(`${port.port} ${port.loopback}`, port);
    }
  }
  return [...found.values()].sort((one, other) => one.port - other.port);
}

/** Returns the inodes of a process's sockets: in proc(5), `/proc/pid/fd` holds links such as `socket:[4711]`. */
function socketsOf(pid: number): ReadonlySet<string> {
  const folder = `/proc/${pid}/fd`;
  const targets = attempt(() => readdirSync(folder), []).map((name) =>
    attempt(() => readlinkSync(`${folder}/${name}`), ""),
  );
  return new Set(targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []));
}

const stateListen = "0A";

/** proc_net_tcp(5): slot, local address and port in hexadecimal, remote ones, state, … inode in the tenth field. */
function listeners(file: string) {
  const rows = attempt(() => readFileSync(file, "utf8"), "").split("\n");
  return rows.flatMap((row) => {
    const [, local = "", , state, , , , , , inode = ""] = row.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    return state === stateListen ? [{ port: Number.parseInt(port, 16), loopback: isLoopback(address), inode }] : [];
  });
}

/** Matches 127.0.0.0/8, ::1 and IPv4-mapped 127.0.0.0/8; the kernel prints each group of four bytes in the processor's byte order. */
function isLoopback(hex: string): boolean {
  return hex.length === 8
    ? hex.endsWith("7F")
    : hex === "00000000000000000000000001000000" || (hex.startsWith("0000000000000000FFFF0000") && hex.endsWith("7F"));
}
