// Runs alone: whoever installs Berth is signed in within a minute, of which tests that compete for the processors would take their part.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { findProgram } from "../../src/daemon/setup/find-program.ts";
import { run, runOk, start } from "../../src/kit/exec.ts";
import { buildRelease } from "../../tools/release/build-release.ts";
import { slowness } from "../../tools/test/slowness.ts";
import {
  makeDebianRoot,
  ordinaryUser,
  startDebianMachine,
  superuser,
  type DebianMachine,
  type DebianUser,
} from "../support/debian-machine.ts";
import { runsAll } from "../support/draw-cases.ts";
import { eventually, guardMs } from "../support/eventually.ts";

/** From the call of install.sh, with the release on the machine, to the first session, on a machine that does nothing else. */
const mostSeconds = 60;
const suites = { "Debian 12": "bookworm", "Debian 13": "trixie" } as const;
const users = { root: superuser, "an ordinary user": ordinaryUser } as const;
const { arch } = process as { arch: "x64" | "arm64" };

const missing = ["mmdebstrap", "unshare", "nsenter", "socat", "ip"].find((name) => findProgram(name, "") === null);
const skip =
  (!runsAll && "SKIPPED: it makes two Debian systems; npm test -- --all runs it") ||
  (process.getuid?.() !== 0 && "SKIPPED: only root makes a Debian system") ||
  (missing !== undefined && `SKIPPED: ${missing} is not installed`);

describe("a release on a clean Debian", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-install-"));
  let archive = "";
  /** Why a system could not be made. */
  const without = new Map<string, string>();

  before(async () => {
    chmodSync(folder, 0o755);
    const key = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const roots = Object.values(suites).map((suite) =>
      makeDebianRoot(suite, join(folder, suite)).catch((error: Error) => {
        if (!/Failed to fetch|Could not connect|Temporary failure/.test(error.message)) throw error;
        without.set(suite, `SKIPPED: ${suite} cannot be fetched: ${error.message.slice(-500)}`);
      }),
    );
    [[archive = ""]] = await Promise.all([buildRelease(join(folder, "shared/release"), key, [arch]), ...roots]);
    flipByte(archive, join(folder, "shared/flipped"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const [system, suite] of Object.entries(suites))
    for (const [who, user] of Object.entries(users))
      test(`${system}, ${who}: signed in within a minute, and nothing is left when it is uninstalled`, async (t) => {
        const why = without.get(suite);
        if (why !== undefined) return t.skip(why);
        const root = join(folder, "machine");
        await runOk({ file: "cp", args: ["-a", join(folder, suite), root] });
        const machine = await startDebianMachine(root, join(folder, "shared"));
        t.after(() => machine.close());
        await useMachine(machine, user, (text) => t.diagnostic(text));
      });

  async function useMachine(machine: DebianMachine, user: DebianUser, say: (text: string) => void): Promise<void> {
    const within = (...words: string[]) => run(machine.command(user, ...words), { timeoutMs: guardMs });
    const shell = async (script: string) => (await runOk(machine.command(superuser, "sh", "-c", script))).stdout;
    const traces = () => shell(leftovers);
    const clean = await traces();
    const flipped = await within("sh", "/srv/flipped/install.sh");
    assert.match(flipped.stderr, /berth-\S+ does not have the checksum that SHA256SUMS names: nothing was installed/);

    const startedAt = Date.now();
    // Root names nothing, as beside the release's files.
    const from = user === superuser ? [] : ["--from", `/srv/release/${basename(archive)}`];
    const install = () => within("sh", "/srv/release/install.sh", ...from);
    const { exitCode, stderr } = await install();
    assert.equal(exitCode, 0, stderr);
    const [, command = ""] = /^berth: Start it: (.+)$/m.exec(stderr) ?? [];
    const platform = start(machine.command(user, "sh", "-c", `echo $$; exec env ${command}`));
    let output = "";
    for (const stream of [platform.stdout, platform.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const says = (pattern: RegExp) =>
      eventually(() => {
        assert.equal(platform.exitCode, null, output);
        return pattern.exec(output);
      }, `${pattern} in ${output}`);
    const [, host = "", code] = await says(/http:\/\/(\S+)\/sign-in#(\S+)/);
    const headers = { host, origin: `http://${host}`, "x-berth-dashboard": "1", "content-type": "application/json" };
    const opened = await machine.ask(4000, { method: "POST", path: "/session", headers, body: { code } });
    const seconds = (Date.now() - startedAt) / 1000;
    assert.equal(opened.status, 200, opened.body);
    const { token } = JSON.parse(opened.body) as { token: string };
    const me = await machine.ask(4000, { path: "/v1/me", headers: { host, authorization: `Bearer ${token}` } });
    assert.equal(me.status, 200, me.body);
    say(`signed in ${seconds.toFixed(1)} s after the download`);
    assert.ok(seconds < mostSeconds * slowness(), `${seconds} s\n${output}`);

    await says(/The example is live/);
    const example = await machine.ask(8080, { path: "/", headers: { host: "example.localhost" } });
    assert.equal(example.status, 200, example.body);
    const files = () =>
      shell(`cd / && find opt ${user.home}/.local usr/local/bin ${installedFiles} | sort | sha256sum`);
    const installed = await files();
    const again = await install();
    assert.equal(again.exitCode, 0, again.stderr);
    assert.equal(await files(), installed, "the second time, install.sh changes nothing");
    assert.deepEqual(machine.refused, [], "nothing but Debian's packages was fetched");

    const over = once(platform, "close");
    await runOk(machine.command(user, "sh", "-c", `kill ${/^\d+/.exec(output)?.[0]}`));
    await over;
    const berthd = command.split(" ").find((word) => word.endsWith("/berthd")) ?? "";
    const uninstalled = await within(berthd, "uninstall", "--purge", "--yes");
    assert.equal(uninstalled.exitCode, 0, uninstalled.stderr);
    assert.equal(await traces(), clean);
  }
});

/** Copies the release with a flipped byte in its archive. */
function flipByte(archive: string, copy: string): void {
  cpSync(dirname(archive), copy, { recursive: true });
  const file = join(copy, basename(archive));
  const bytes = readFileSync(file);
  bytes[bytes.length >> 1]! ^= 1;
  writeFileSync(file, bytes);
}

/** What `find` prints of what install.sh wrote. */
const installedFiles = "-type f -printf '%p %C@\\n' -o -type l -printf '%p %l\\n'";

/** Prints what a platform may leave, except for the cache that all programs of Node.js share: processes, mounts, network namespaces, interfaces, rules, and files of its own. */
const leftovers = `
for process in /proc/[0-9]*; do
  { read -r name <$process/comm && [ $process = /proc/$$ ] || [ "$name" = cat ] || echo $process $name; } 2>/dev/null
done
grep -v /run/netns /proc/mounts
find /tmp /dev/shm /run/netns /sys/class/net /opt /usr/local/bin -mindepth 1 ! -path '*/node-compile-cache*' 2>/dev/null
find /home /root ! -type d ! -path '*/.npm/*'
[ ! -e /usr/sbin/nft ] || nft list tables`;
