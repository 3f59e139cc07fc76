import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { connect, type AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import type { IncomingMessage, ServerResponse } from "node:http";
import { runOk, start, systemPath } from "../../src/kit/exec.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import { clientEnv, git } from "./git-servers.ts";

const sshdBin = "/usr/sbin/sshd";

/** Why tests over SSH are skipped; false where they run. */
export const withoutSshd = !existsSync(sshdBin) && "SKIPPED: Debian's package openssh-server is not installed";

/** Creates a folder with a bare repository `app.git`, its work tree, and a self-signed certificate for `localhost`. */
export async function makeRemote() {
  const root = await mkdtemp("/tmp/berth-remote-");
  const bare = join(root, "app.git");
  const work = join(root, "work");
  await git(root, ["init", "-q", "--bare", "-b", "main", bare]);
  await git(root, ["init", "-q", "-b", "main", work]);
  const key = join(root, "tls.key");
  const caFile = join(root, "tls.pem");
  const names = "subjectAltName=DNS:localhost,DNS:git.test,IP:127.0.0.1";
  const args = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=git", "-addext", names];
  await runOk({ file: "openssl", args: [...args, "-keyout", key, "-out", caFile] });
  await chmod(root, 0o755);
  const run = (...words: string[]) => git(root, ["-C", work, ...words]);
  return {
    ...{ root, bare, caFile, run },
    /** Commits a file, pushes it to a branch, and returns the commit. */
    async push(text: string, { branch = "main", file = "a.txt" } = {}) {
      await mkdir(join(work, file, ".."), { recursive: true });
      await writeFile(join(work, file), text);
      await run("add", ".");
      await run("commit", "-q", "-m", `Say ${text.slice(0, 20)}`);
      await run("push", "-q", "--force", bare, `HEAD:refs/heads/${branch}`);
      return run("rev-parse", "HEAD");
    },
    tls: async () => ({ key: await readFile(key), cert: await readFile(caFile) }),
    close: () => rm(root, { recursive: true, force: true }),
  };
}

export type RemoteFolder = Awaited<ReturnType<typeof makeRemote>>;

/** Handles a request before git; returns true when it sent the response. */
export type Intercept = (request: IncomingMessage, response: ServerResponse) => boolean;

/** Serves the repository over HTTPS with git's own server program. With a token it requires it, as forges do for a private repository. */
export async function serveHttps(remote: RemoteFolder, options: { token?: string; intercept?: Intercept } = {}) {
  const { token, intercept } = options;
  const wanted = token === undefined ? null : `Basic ${Buffer.from(`oauth2:${token}`).toString("base64")}`;
  const server: Server = createServer(await remote.tls(), (request, response) => {
    if (intercept?.(request, response) === true) return;
    if (wanted !== null && request.headers.authorization !== wanted)
      return void response.writeHead(401, { "www-authenticate": 'Basic realm="git"' }).end();
    serveBackend(remote.root, request, response);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    ...{ port, url: `https://localhost:${port}/app.git` },
    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

function serveBackend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://x");
  const child = start(
    { file: "git", args: ["http-backend"] },
    {
      env: {
        ...clientEnv(root),
        PATH: systemPath,
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: "1",
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        REQUEST_METHOD: request.method ?? "GET",
        CONTENT_TYPE: request.headers["content-type"] ?? "",
        HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
        GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
      },
    },
  );
  request.pipe(child.stdin).on("error", () => {});
  child.stderr.resume();
  let head: Buffer | null = Buffer.alloc(0);
  child.stdout.on("data", (part: Buffer) => {
    if (head === null) return void response.write(part);
    head = Buffer.concat([head, part]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    const lines = head.subarray(0, end).toString().split("\r\n");
    const headers = lines.map((line) => line.split(": ", 2) as [string, string]);
    const status = headers.find(([name]) => name === "Status")?.[1];
    response.writeHead(Number(status?.slice(0, 3) ?? 200), Object.fromEntries(headers.filter(([n]) => n !== "Status")));
    response.write(head.subarray(end + 4));
    head = null;
  });
  child.once("close", () => response.end());
}

/** Starts Debian's SSH server with one host key. `publicKey` logs in as the user that runs the tests. */
export async function serveSsh(remote: RemoteFolder, publicKey: string) {
  const port = await freePort();
  const dir = await mkdtemp(join(remote.root, "sshd-"));
  const hostKey = join(dir, "host_key");
  const authorized = join(dir, "authorized_keys");
  await runOk({ file: "ssh-keygen", args: ["-q", "-t", "ed25519", "-N", "", "-f", hostKey] });
  await writeFile(authorized, `${publicKey}\n`, { mode: 0o600 });
  if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
  const settings = {
    ListenAddress: `127.0.0.1:${port}`,
    HostKey: hostKey,
    AuthorizedKeysFile: authorized,
    StrictModes: "no",
    PidFile: "none",
    UsePAM: "no",
    PasswordAuthentication: "no",
    PermitRootLogin: "prohibit-password",
    SetEnv: "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*",
  };
  const config = join(dir, "sshd_config");
  await writeFile(
    config,
    Object.entries(settings)
      .map((pair) => `${pair.join(" ")}\n`)
      .join(""),
  );
  const server = start({ file: sshdBin, args: ["-D", "-e", "-f", config] });
  let said = "";
  server.stderr.on("data", (part: Buffer) => (said = `${said}${part.toString()}`.slice(-4000)));
  const ended = new Promise<void>((done) => server.once("exit", () => done()));
  await eventually(() => answers(port), "sshd accepts connections");
  return {
    ...{ port, hostKey },
    url: `ssh://${userInfo().username}@localhost:${port}${remote.bare}`,
    log: () => said,
    close: async () => {
      server.kill("SIGTERM");
      await ended;
    },
  };
}

function answers(port: number): Promise<true | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("data", () => (socket.destroy(), resolve(true))).once("error", () => resolve(undefined));
  });
}
