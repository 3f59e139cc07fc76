import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGitServers, type GitServersOptions } from "../../src/git/git-servers.ts";
import type { GitCaller, GitGate, GitProject, PushRequest } from "../../src/git/gate.ts";
import { run, runOk, systemPath, type ExecResult, type RunOptions } from "../../src/kit/exec.ts";
import { silentLog } from "../../src/kit/log.ts";
import { createConfinement, type Confinement } from "../../src/sandbox/confine.ts";
import { guardMs } from "./eventually.ts";

export const project: GitProject = { id: "prj_demo", organization_id: "org_main", slug: "demo", deploy_branch: "main" };
const main: GitCaller = {
  kind: "token",
  id: "tok_ada",
  name: "ada",
  organization_id: "org_main",
  organization_slug: "main",
  may_rewrite: true,
};
const other: GitCaller = {
  ...main,
  id: "tok_bob",
  name: "bob",
  organization_id: "org_other",
  organization_slug: "other",
};
const reader: GitCaller = { ...main, id: "tok_read", name: "reader" };

/** Tokens that the scripted gate accepts; the last one is read-only. */
export const tokens = {
  ada: "berth_m_ada-secret",
  bob: "berth_m_bob-secret",
  reader: "berth_m_reader-secret",
} as const;

/** A gate that stands in for the rest of Berth: two organizations, one project, and a `receive` function that each test sets. */
export class ScriptedGate implements GitGate {
  readonly keys = new Map<string, readonly GitCaller[]>();
  readonly revoked = new Set<string>();
  readonly pushes: PushRequest[] = [];
  receive: GitGate["receive"] = async () => ({ accepted: true });

  authenticateKey = async (fingerprint: string) => this.keys.get(fingerprint) ?? [];
  authenticateToken = async (token: string) =>
    this.revoked.has(token)
      ? null
      : ({ [tokens.ada]: main, [tokens.bob]: other, [tokens.reader]: reader }[token] ?? null);

  async findProject(caller: GitCaller, path: { project_slug: string }, access: string) {
    if (caller.organization_id !== project.organization_id) return { outcome: "missing" } as const;
    if (path.project_slug === "deleted")
      return { outcome: "refused", reason: "Project deleted is deleted; undelete it first." } as const;
    if (path.project_slug !== project.slug) return { outcome: "missing" } as const;
    if (access === "write" && caller.id === reader.id)
      return { outcome: "refused", reason: "This token may not push." } as const;
    return { outcome: "found", project } as const;
  }

  async completed(push: PushRequest) {
    this.pushes.push(push);
  }

  /** Registers a public key's fingerprint for one or both organizations. */
  register(fingerprint: string, who: "ada" | "bob" | "both" = "ada"): void {
    this.keys.set(fingerprint, who === "both" ? [main, other] : [who === "ada" ? main : other]);
  }
}

/** The strongest confinement that this machine supports, as a platform uses it. */
export function testConfinement(): Promise<Confinement> {
  const found = (program: string) => (existsSync(`/usr/bin/${program}`) ? `/usr/bin/${program}` : null);
  return createConfinement({ bwrap: found("bwrap"), setpriv: found("setpriv") }, { uid: testGitUid, program: "git" });
}

/** The uid of git's user when root runs the tests. */
export const testGitUid = 34_997;

export type Host = Awaited<ReturnType<typeof startGitHost>>;

/** Starts real git servers on free ports, with a separate folder and the given gate. */
export async function startGitHost(gate: GitGate, limits: GitServersOptions["limits"] = {}, dir?: string) {
  const root = dir ?? (await mkdtemp(join(tmpdir(), "berth-git-")));
  const repositoryDir = join(root, "repositories", project.id);
  await git(root, ["init", "-q", "--bare", "-b", "main", "--template=", repositoryDir]);
  const confinement = await testConfinement();
  await confinement.own(repositoryDir);
  const repositories = {
    ensure: async () => repositoryDir,
    setHead: async (_id: string, ref: string) =>
      void (await git(root, ["-C", repositoryDir, "symbolic-ref", "HEAD", ref])),
  };
  const ssh = { host: "127.0.0.1", port: 0 };
  const hostKeyFile = join(root, "ssh", "host_ed25519");
  const servers = await createGitServers({
    gate,
    repositories,
    dir: join(root, "git"),
    hostKeyFile,
    ssh,
    confinement,
    log: silentLog,
    limits,
  });
  await servers.listen();
  const http = createServer((req, res) => void servers.httpHandler(req, res));
  http.requestTimeout = 0;
  await new Promise<void>((done) => http.listen(0, "127.0.0.1", done));
  const { port: httpPort } = http.address() as AddressInfo;
  const close = async () => {
    await servers.close(0);
    http.close();
    http.closeAllConnections();
    await rm(root, { recursive: true, force: true });
  };
  const sshUrl = (path = "main/demo.git") => `ssh://git@127.0.0.1:${servers.port}/${path}`;
  const httpUrl = (token: string = tokens.ada, path = "main/demo.git") =>
    `http://x:${token}@127.0.0.1:${httpPort}/git/${path}`;
  return { root, repositoryDir, servers, httpPort, sshUrl, httpUrl, close };
}

/** The environment of a git client that ignores the configuration of this machine and its user. */
export function clientEnv(root: string, keyFile?: string): Record<string, string> {
  const options =
    "-F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR";
  return {
    PATH: systemPath,
    HOME: root,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
    // The repositories belong to git's user, and the tests run as another one.
    ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" },
    GIT_TERMINAL_PROMPT: "0",
    GIT_AUTHOR_NAME: "Ada",
    GIT_AUTHOR_EMAIL: "ada@example.org",
    GIT_COMMITTER_NAME: "Ada",
    GIT_COMMITTER_EMAIL: "ada@example.org",
    ...(keyFile === undefined ? {} : { GIT_SSH_COMMAND: `ssh ${options} -i ${keyFile}` }),
  };
}

/** Runs a git client and returns its result, also when it fails. */
export function tryGit(
  root: string,
  args: readonly string[],
  options: RunOptions & { keyFile?: string } = {},
): Promise<ExecResult> {
  return run({ file: "git", args }, { timeoutMs: guardMs, env: clientEnv(root, options.keyFile), ...options });
}

/** Runs a git client that must succeed, and returns its trimmed output. */
export async function git(
  root: string,
  args: readonly string[],
  options: RunOptions & { keyFile?: string } = {},
): Promise<string> {
  const result = await runOk(
    { file: "git", args },
    { timeoutMs: guardMs, env: clientEnv(root, options.keyFile), ...options },
  );
  return result.stdout.trim();
}

/** Creates a work tree with one commit on `main` and returns its folder. */
export async function makeWorkTree(root: string, name: string): Promise<string> {
  const dir = join(root, "work", name);
  await git(root, ["init", "-q", "-b", "main", dir]);
  await commitFile(root, dir, "hello.txt", `hello from ${name}\n`);
  return dir;
}

/** Commits one file and returns the commit's id. */
export async function commitFile(
  root: string,
  dir: string,
  file: string,
  content: string | Uint8Array,
): Promise<string> {
  await writeFile(join(dir, file), content);
  await git(root, ["-C", dir, "add", "."]);
  await git(root, ["-C", dir, "commit", "-q", "-m", `Add ${file}`]);
  return git(root, ["-C", dir, "rev-parse", "HEAD"]);
}

/** The commit of a branch in the served repository, or "" when the branch does not exist. */
export async function refOf(host: Host, ref = "refs/heads/main"): Promise<string> {
  const found = await tryGit(host.root, ["-C", host.repositoryDir, "rev-parse", "--verify", "-q", ref]);
  return found.stdout.trim();
}

/** Creates a client's key pair; returns the private key's file and the public key's fingerprint. */
export async function makeKey(
  root: string,
  type: string,
  bits?: number,
): Promise<{ keyFile: string; fingerprint: string }> {
  const keyFile = join(root, `id_${type}`);
  const args = [
    "-q",
    "-t",
    type,
    "-N",
    "",
    "-C",
    type,
    "-f",
    keyFile,
    ...(bits === undefined ? [] : ["-b", String(bits)]),
  ];
  await runOk({ file: "ssh-keygen", args });
  const { stdout } = await runOk({ file: "ssh-keygen", args: ["-l", "-E", "sha256", "-f", `${keyFile}.pub`] });
  return { keyFile, fingerprint: stdout.split(" ")[1] as string };
}
