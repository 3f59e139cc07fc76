import { once } from "node:events";
import { createServer, request, type IncomingMessage, type Server } from "node:http";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { runOk, start, systemPath, type Command } from "../../src/kit/exec.ts";
import { guardMs } from "./eventually.ts";

/** A minimal Debian in namespaces of its own: files, processes and network. It reaches its package mirror, and nothing else. */
export interface DebianMachine {
  /** A command that runs `words` in it as one of its users, with nothing but PATH and HOME in the environment. */
  command(user: DebianUser, ...words: string[]): Command;
  /** Sends a request to a port on its loopback interface. */
  ask(port: number, wanted: Wanted): Promise<{ readonly status: number; readonly body: string }>;
  /** What its programs requested from others than its package mirror. */
  readonly refused: readonly string[];
  /** Ends all its processes, and with them its mounts and its network. */
  close(): Promise<void>;
}

export interface DebianUser {
  readonly id: number;
  readonly home: string;
}

interface Wanted {
  readonly method?: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
}

export const superuser: DebianUser = { id: 0, home: "/root" };
export const ordinaryUser: DebianUser = { id: 1000, home: "/home/ada" };

const proxyPort = 3142;

/** Writes the root folder of a Debian that has an ordinary user, from Debian's packages. */
export async function makeDebianRoot(suite: string, root: string): Promise<void> {
  const setup = [
    'chroot "$1" useradd --create-home --uid 1000 ada',
    `echo 'Acquire::http::Proxy "http://127.0.0.1:${proxyPort}";' >"$1/etc/apt/apt.conf.d/90proxy"`,
    // No name is resolved, and the question fails at once.
    ': >"$1/etc/resolv.conf"',
  ];
  const options = ["--mode=root", "--variant=minbase", "--quiet", "--dpkgopt=force-unsafe-io"];
  const args = [...options, "--include=ca-certificates,git,passwd", ...setup.map((line) => `--customize-hook=${line}`)];
  await runOk(
    { file: "mmdebstrap", args: [...args, suite, root] },
    { env: { PATH: systemPath }, timeoutMs: 3 * guardMs },
  );
}

// Without control groups, because those of a platform on this machine may have the same names. The interface leads nowhere: without one,
// programs take the machine for one that has no network at all.
const boot = `
mount --make-rprivate /
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
for folder in dev/shm run tmp; do mount -t tmpfs tmpfs "$folder"; done
mount --bind -o ro "$1" srv
ip link set lo up
ip link add eth0 type veth peer name uplink
ip address add 10.214.0.2/24 dev eth0
ip link set eth0 up
ip link set uplink up
ip route add default via 10.214.0.1
pivot_root . mnt
cd /
umount -l mnt
echo booted
exec /bin/sh -c "cat; exit"`;

/** Boots a machine from a root folder, which it changes; it sees `shared` as /srv. It ends with this process, if nothing closed it before. */
export async function startDebianMachine(root: string, shared: string): Promise<DebianMachine> {
  const [proxySocket, refused] = [`${root}.proxy`, [] as string[]];
  const proxy = await startProxy(proxySocket, mirrorsOf(root), refused);
  const namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child"];
  const machine = start(
    { file: "unshare", args: [...namespaces, "sh", "-euc", boot, root, shared] },
    { env: { PATH: systemPath } },
  );
  const over = once(machine, "close");
  let failure = "";
  machine.stderr.on("data", (chunk: Buffer) => (failure += chunk.toString()));
  const ended = over.then(() => Promise.reject(new Error(`the machine did not boot: ${failure}`)));
  await Promise.race([once(machine.stdout, "data"), ended]);
  ended.catch(() => {});
  const [init = ""] = readFileSync(`/proc/${machine.pid}/task/${machine.pid}/children`, "utf8").split(" ");
  const relay = (from: string, to: string) =>
    start({ file: "nsenter", args: [`--net=/proc/${init}/ns/net`, "socat", from, to] });
  const relays = [relay(`TCP-LISTEN:${proxyPort},bind=127.0.0.1,fork,reuseaddr`, `UNIX-CONNECT:${proxySocket}`)];
  return {
    command({ id, home }, ...words) {
      const as = ["setpriv", `--reuid=${id}`, `--regid=${id}`, "--clear-groups", "env", `--chdir=${home}`, "-i"];
      const enter = [`--target=${init}`, "--mount", "--net", "--pid", "--uts", "--ipc", "--root", "--wd"];
      return { file: "nsenter", args: [...enter, ...as, `HOME=${home}`, `PATH=${systemPath}`, ...words] };
    },
    ask: (port, wanted) => ask(relay("STDIO", `TCP:127.0.0.1:${port}`), wanted),
    refused,
    async close() {
      for (const each of relays) each.kill();
      machine.kill("SIGKILL");
      await over;
      proxy.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Returns the hosts that the machine's apt gets packages from. */
function mirrorsOf(root: string): ReadonlySet<string> {
  const sources = readFileSync(join(root, "etc/apt/sources.list"), "utf8");
  return new Set(Array.from(sources.matchAll(/https?:\/\/([^/\s]+)/g), ([, host = ""]) => host));
}

/** Forwards requests to the allowed hosts, and notes and refuses all others. */
async function startProxy(socket: string, allowed: ReadonlySet<string>, refused: string[]): Promise<Server> {
  const proxy = createServer((asked, answer) => {
    const url = URL.parse(asked.url ?? "");
    if (url === null || !allowed.has(url.host)) {
      refused.push(asked.url ?? "");
      return void answer.writeHead(403).end();
    }
    const { method, headers } = asked;
    const passed = request(url, { method, headers: { ...headers, host: url.host } }, (response) => {
      response.pipe(answer.writeHead(response.statusCode ?? 502, response.headers));
    });
    asked.pipe(passed.on("error", () => answer.destroy()));
  });
  proxy.on("connect", ({ url = "" }, client) => {
    refused.push(url);
    client.destroy();
  });
  await once(proxy.listen(socket), "listening");
  return proxy;
}

/** Sends a request over a program's standard streams. */
async function ask(carrier: ReturnType<typeof start>, { method = "GET", path, headers, body }: Wanted) {
  const createConnection = () => Duplex.from({ readable: carrier.stdout, writable: carrier.stdin });
  const sent = request({ createConnection, method, path, headers: { connection: "close", ...headers } } as object);
  try {
    const response = once(sent, "response") as Promise<[IncomingMessage]>;
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const [answer] = await response;
    return { status: answer.statusCode ?? 0, body: await text(answer) };
  } finally {
    carrier.kill();
  }
}
