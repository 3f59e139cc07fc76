import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { start } from "../../src/kit/exec.ts";
import { until } from "../../src/kit/until.ts";
import {
  commitFile,
  git,
  makeKey,
  makeWorkTree,
  ScriptedGate,
  startGitHost,
  type Host,
} from "../../test/support/git-servers.ts";
import { freePort } from "../../test/support/free-port.ts";
import { accepts } from "./nginx.ts";
import { inTurns, medians, timed, timeRow, type BenchRow } from "./row.ts";

const sizeBytes = 50_000_000;
const rounds = 3;
const sshdBin = "/usr/sbin/sshd";

/** Pushes 50 MB over Berth's SSH and over OpenSSH's; without OpenSSH, over git's file transport. */
export async function measureGitPush(): Promise<BenchRow> {
  const gate = new ScriptedGate();
  const host = await startGitHost(gate);
  const { keyFile, fingerprint } = await makeKey(host.root, "ed25519");
  gate.register(fingerprint);
  const work = await makeWorkTree(host.root, "bench");
  await commitFile(host.root, work, "big.bin", randomBytes(sizeBytes));
  const rival = await openRival(host, keyFile);
  const push = (url: string, ref: string) =>
    timed(() => git(host.root, ["-C", work, "push", "-q", url, ref], { keyFile, timeoutMs: 120_000 }));
  const measured = await inTurns(rounds, {
    theirs: async (round) => push(await rival.url(round), "main"),
    async ours(round) {
      const took = await push(host.sshUrl(), `main:refs/heads/ours-${round}`);
      await git(host.root, ["-C", host.repositoryDir, "update-ref", "-d", `refs/heads/ours-${round}`]);
      await git(host.root, ["-C", host.repositoryDir, "prune-packed"]);
      await dropPacks(host);
      return took;
    },
  });
  rival.close();
  await host.close();
  return timeRow("git push of 50 MB over SSH", rival.name, { ...medians(measured), goal: 1.2 });
}

/** Removes all objects, so that each round sends everything again. */
async function dropPacks({ root, repositoryDir }: Host): Promise<void> {
  await git(root, ["-C", repositoryDir, "repack", "-a", "-d", "-q"]);
  await git(root, ["-C", repositoryDir, "prune", "--expire=now"]);
}

/** Returns what Berth is compared with; `url` creates a repository for each round. */
async function openRival(host: Host, keyFile: string) {
  const fresh = async (round: number) => {
    const dir = join(host.root, "rival", `${round}.git`);
    await git(host.root, ["init", "-q", "--bare", dir]);
    // Gives both the same work: check every object, keep the pack as received.
    for (const setting of ["receive.fsckObjects=true", "receive.unpackLimit=1"])
      await git(host.root, ["-C", dir, "config", ...setting.split("=")]);
    return dir;
  };
  if (!existsSync(sshdBin)) return { name: "git's file transport", url: fresh, close: () => {} };
  const { port, close } = await startOpenSsh(host, keyFile);
  const url = async (round: number) => `ssh://root@127.0.0.1:${port}${await fresh(round)}`;
  return { name: "git-receive-pack over OpenSSH", url, close };
}

async function startOpenSsh({ root }: Host, keyFile: string): Promise<{ port: number; close: () => void }> {
  const port = await freePort();
  const dir = join(root, "openssh");
  await mkdir(dir);
  await writeFile(join(dir, "authorized_keys"), await readFile(`${keyFile}.pub`), { mode: 0o600 });
  await writeFile(join(dir, "host_key"), await readFile(join(root, "ssh", "host_ed25519")));
  await chmod(join(dir, "host_key"), 0o600);
  const files = { AuthorizedKeysFile: join(dir, "authorized_keys"), HostKey: join(dir, "host_key"), PidFile: "none" };
  const options = { ListenAddress: "127.0.0.1", ...files, StrictModes: "no", UsePAM: "no", PermitRootLogin: "yes" };
  const args = ["-D", "-e", "-f", "/dev/null", "-p", String(port)];
  for (const [name, value] of Object.entries(options)) args.push("-o", `${name}=${value}`);
  const child = start({ file: sshdBin, args });
  child.stderr.resume();
  if (!(await until(() => accepts(port), { timeoutMs: 20_000 }))) throw new Error("OpenSSH does not answer.");
  return { port, close: () => void child.kill() };
}
