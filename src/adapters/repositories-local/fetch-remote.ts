import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { run, runOk, type Command, type ExecResult, type RunOptions } from "../../kit/exec.ts";
import { pinAddress, type AddressPolicy } from "../../kit/pinned-address.ts";
import { runFolder } from "../../kit/run-folder.ts";
import type { Fetched, Remote } from "../../ports/repositories.ts";
import type { Confinement, Shown } from "../../sandbox/confine.ts";
import type { GitCommands } from "./commands.ts";
import { fingerprintOf } from "../../kit/ssh-fingerprint.ts";
import { openRelay, tooMuch, type Relay } from "./relay.ts";

export interface RemoteAccess {
  readonly addresses: AddressPolicy;
  /** The file of CA certificates that git trusts; null if there is none. */
  readonly certificates: string | null;
}

export interface Fetching {
  readonly remote: Remote;
  readonly access: RemoteAccess;
  readonly confinement: Confinement;
  /** Returns the git commands for the repository, with additional files visible to git and another program that starts it. */
  readonly git: (
    shown: Pick<Shown, "writable" | "readable" | "placed">,
    startBy: (command: Command) => Command,
  ) => GitCommands;
  readonly dir: string;
  readonly quarantine: string;
  /** How git runs; its objects go to the quarantine that `env` names. */
  readonly place: RunOptions;
}

export type FetchedCommit =
  | { readonly outcome: "fetched"; readonly commit: string; readonly hostKeys: string | null }
  | Exclude<Fetched, { outcome: "fetched" }>;

const here = dirname(fileURLToPath(import.meta.url));
const reachSh = join(here, "../../sandbox/reach.sh");
const reachMjs = join(here, "../../sandbox/reach.mjs");
const withKey = join(here, "with-key.sh");
const socat = "/usr/bin/socat";
const hasSocat = existsSync(socat);
const relayPrograms = [reachSh, ...(hasSocat ? [] : [reachMjs, process.execPath])];
// In the sandbox, which has its own loopback interface.
const relayPort = 1080;
const lookMs = 60_000;
const slackBytes = 8 * 1024 * 1024;

/**
 * Fetches with git itself, whose only network is a relay to the one address that was resolved and allowed: nothing else is reachable,
 * whatever a redirect, a configuration or a bug in git names. The key goes to an agent over stdin and is never in a file.
 */
export async function fetchRemote(fetching: Fetching): Promise<FetchedCommit> {
  const { remote, access } = fetching;
  const url = new URL(remote.url);
  // URL normalises IP addresses only for the web's schemes.
  const pinned = await pinAddress(new URL(`http://${url.hostname}`).hostname, access.addresses);
  if (pinned.outcome !== "found") return { outcome: "failed", reason: pinned.reason };
  const isSsh = url.protocol === "ssh:";
  const port = url.port === "" ? (isSsh ? 22 : 443) : Number(url.port);
  const folder = await mkdtemp(join(runFolder(fetching.dir), "fetch-"));
  const target = { address: pinned.address, port, asProxy: !isSsh, maxBytes: remote.maxBytes, slackBytes };
  let relay: Relay | undefined;
  try {
    relay = await openRelay(target, fetching.confinement.hasOwnNetwork ? join(folder, "relay") : null);
    return await fetchBy(fetching, relay, folder);
  } finally {
    relay?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function fetchBy(fetching: Fetching, relay: Relay, folder: string): Promise<FetchedCommit> {
  const { remote, place } = fetching;
  const client = await prepareClient(fetching, relay, folder);
  const options: RunOptions = {
    ...place,
    env: { ...place.env, ...client.env },
    ...(remote.privateKey === null ? {} : { stdin: remote.privateKey }),
  };
  const failed = (result: ExecResult) => ({ outcome: "failed" as const, reason: relay.problem() ?? reasonOf(result) });
  const looked = await run(client.git.remoteHead(remote), { ...options, timeoutMs: lookMs });
  const hostKeys = await client.hostKeys();
  const shown = fingerprintOf(hostKeys);
  if (remote.hostKeyPin !== null && shown !== null && shown !== remote.hostKeyPin)
    return {
      outcome: "failed",
      reason: `The host presents the key ${shown}, but the project expects ${remote.hostKeyPin}.`,
    };
  if (looked.exitCode !== 0) return failed(looked);
  const commit = /^([0-9a-f]{40})\t/.exec(looked.stdout)?.[1];
  if (commit === undefined)
    return { outcome: "failed", reason: `The repository has no branch ${remote.branch}.`, isMissing: true };
  if (commit === remote.known) return { outcome: "unchanged", commit, hostKeys };
  const fetched = await run(client.git.fetch(remote.url, commit), options);
  if (fetched.exitCode !== 0) return failed(fetched);
  if ((await packBytes(fetching.quarantine)) > remote.maxBytes)
    return { outcome: "failed", reason: tooMuch(remote.maxBytes) };
  return { outcome: "fetched", commit, hostKeys };
}

/** Returns the size of the fetched packs, counted as for a push. */
async function packBytes(quarantine: string): Promise<number> {
  const folder = join(quarantine, "pack");
  const names = await readdir(folder).catch(() => []);
  const packs = await Promise.all(
    names.filter((name) => name.endsWith(".pack")).map((name) => stat(join(folder, name))),
  );
  return packs.reduce((sum, { size }) => sum + size, 0);
}

/** Prepares git's connection to the relay and its files for TLS or SSH. */
async function prepareClient({ remote, access, confinement, git }: Fetching, relay: Relay, folder: string) {
  const knownHosts = join(folder, "known_hosts");
  const passwd = join(folder, "passwd");
  await writeFile(knownHosts, remote.hostKeys ?? "", { mode: 0o600 });
  await confinement.own(folder);
  const { uid } = await stat(knownHosts);
  // ssh refuses to run as a user without a name.
  await writeFile(passwd, `git:x:${uid}:${uid}::/nonexistent:/bin/sh\n`, { mode: 0o644 });
  const isOwn = typeof relay.place === "string";
  const port = isOwn ? relayPort : Number(relay.place);
  const { certificates } = access;
  const shown = {
    writable: [folder],
    readable: [withKey, ...relayPrograms, ...(certificates === null ? [] : [certificates])],
    placed: [{ source: passwd, target: "/etc/passwd" }],
  };
  const isSsh = remote.url.startsWith("ssh:");
  const startBy = (command: Command) => {
    const keyed = isSsh ? { file: "ssh-agent", args: ["/bin/sh", withKey, command.file, ...command.args] } : command;
    return isOwn ? throughRelay(String(relay.place), keyed) : keyed;
  };
  const env = {
    ...(isSsh ? sshEnv({ port, knownHosts, isKnown: remote.hostKeys !== null }) : httpsEnv(port, remote.token)),
    ...(certificates === null ? {} : { GIT_SSL_CAINFO: certificates }),
  };
  const hostKeys = async () => (isSsh ? readFile(knownHosts, "utf8") : null);
  return { git: git(shown, startBy), env, hostKeys };
}

function throughRelay(socket: string, { file, args }: Command): Command {
  const forward = ["-", hasSocat ? socat : "-", process.execPath, reachMjs, String(relayPort), socket, "--"];
  return { file: "/bin/sh", args: [reachSh, ...forward, file, ...args] };
}

const ofAll: Readonly<Record<string, string>> = {
  "protocol.allow": "never",
  "transfer.fsckObjects": "true",
  "transfer.bundleURI": "false",
  // Keep the pack as received, and run no maintenance on the temporary quarantine.
  "fetch.unpackLimit": "1",
  "maintenance.auto": "false",
};

function httpsEnv(port: number, token: string | null): Record<string, string> {
  const basic = token === null ? null : Buffer.from(`oauth2:${token}`).toString("base64");
  return {
    ...configEnv({
      "protocol.https.allow": "always",
      "http.proxy": `http://127.0.0.1:${port}`,
      "http.followRedirects": "false",
      "http.lowSpeedLimit": "1",
      "http.lowSpeedTime": "60",
      // GitHub, GitLab and Gitea accept a token as the password of any user.
      ...(basic === null ? {} : { "http.extraHeader": `Authorization: Basic ${basic}` }),
    }),
    GIT_ASKPASS: "/bin/false",
  };
}

function sshEnv(ssh: { port: number; knownHosts: string; isKnown: boolean }): Record<string, string> {
  const options = {
    HostName: "127.0.0.1",
    Port: ssh.port,
    // The file has one host only, so use the same alias whatever the host's name is.
    HostKeyAlias: "repository",
    UserKnownHostsFile: ssh.knownHosts,
    GlobalKnownHostsFile: "/dev/null",
    StrictHostKeyChecking: ssh.isKnown ? "yes" : "accept-new",
    HashKnownHosts: "no",
    UpdateHostKeys: "no",
    BatchMode: "yes",
    ConnectTimeout: 20,
    ServerAliveInterval: 15,
    LogLevel: "ERROR",
  };
  const words = Object.entries(options).map(([name, value]) => `-o ${name}=${value}`);
  return {
    ...configEnv({ "protocol.ssh.allow": "always" }),
    GIT_SSH_COMMAND: ["ssh", "-F", "none", ...words].join(" "),
    GIT_SSH_VARIANT: "ssh",
  };
}

// Passes settings in the environment: only git's own user can read the token there, while arguments are visible to all users.
function configEnv(own: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = Object.entries({ ...ofAll, ...own });
  const variables = pairs.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(pairs.length), ...(Object.fromEntries(variables) as Record<string, string>) };
}

const known: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [
    /Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED/,
    "The host presents another key than before. If its operator changed the key on purpose, set the new one: berth follow <url> --host-key SHA256:…",
  ],
  [
    /Permission denied \(|not authorized|access rights/i,
    "The repository's host refused the deploy key: add the public key to the repository there, and check the address.",
  ],
  [
    /could not read Username|Authentication failed|returned error: 40[13]/,
    "The repository's host refused access. A private repository needs a token with the right to read it, or an SSH address.",
  ],
  [
    /returned error: 404|Repository not found|not found/i,
    "There is no such repository, or it may not be read with this token.",
  ],
  [
    /returned error: 3\d\d|redirect/i,
    "The host answers with a redirect, which is not followed: use the address that it leads to.",
  ],
  [/certificate|SSL|TLS/, "The certificate of the repository's host is not valid for its name."],
];

/** Returns the reason of a failed fetch as a sentence for the user. */
function reasonOf({ stderr, timedOut, exitCode }: ExecResult): string {
  if (timedOut) return "The repository's host did not send everything in time.";
  const found = known.find(([pattern]) => pattern.test(stderr));
  if (found !== undefined) return found[1];
  const line = stderr.split("\n").find((each) => /^(?:fatal|error|remote):/.test(each)) ?? "";
  const said = line
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .slice(0, 200)
    .trim();
  return said === ""
    ? `git could not fetch it (${exitCode === null ? "it was killed" : `exit code ${exitCode}`}).`
    : `git could not fetch it: ${said}`;
}

/** Creates a deploy key in the run folder, which is in memory if root has one. */
export async function makeDeployKey(dir: string, comment: string) {
  const folder = await mkdtemp(join(runFolder(dir), "key-"));
  const file = join(folder, "key");
  try {
    await runOk({ file: "ssh-keygen", args: ["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", file] });
    return { publicKey: (await readFile(`${file}.pub`, "utf8")).trim(), privateKey: await readFile(file, "utf8") };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
