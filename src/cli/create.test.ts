import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser, type CliUser } from "../../test/support/cli.ts";
import { sampleKey, sampleMe, sampleProject } from "../../test/support/contract-samples.ts";
import { goodToken, startScriptedPlatform, type Script } from "../../test/support/scripted-platform.ts";
import { run, runOk } from "../kit/exec.ts";
import { guardMs } from "../../test/support/eventually.ts";

const project = sampleProject();
const script = {
  "projects.create": () => project,
  "projects.get": () => project,
  "ssh-keys.list": () => ({ ssh_keys: [sampleKey()] }),
  "ssh-keys.create": sampleKey,
  "me.get": sampleMe,
};

async function repository(user: CliUser): Promise<string> {
  const folder = join(user.home, "app");
  await mkdir(folder);
  await runOk({ file: "git", args: ["init", "-q", "-b", "trunk", folder] }, { env: user.env });
  return folder;
}

async function git(user: CliUser, cwd: string, args: string[]): Promise<string> {
  return (await runOk({ file: "git", args }, { cwd, env: user.env })).stdout.trim();
}

test("create adds the git remote, says the next step, and later commands know the project by it", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const cwd = await repository(user);
  const { exitCode, stdout } = await user.berth(["create", "demo", "--ssh"], { cwd });
  assert.equal(exitCode, 0);
  assert.match(stdout, /git push berth trunk/);
  assert.match(stdout, /compare the host key's fingerprint .*: SHA256:hostkey\n/);
  assert.equal(await git(user, cwd, ["remote", "get-url", "berth"]), project.git.ssh);
  assert.equal((await user.berth(["projects", "show"], { cwd })).exitCode, 0);
  assert.deepEqual(platform.seen.at(-1)?.params, { slug: "demo" });
});

test("link connects a second clone with an existing project, and creates none", async () => {
  await using platform = await startScriptedPlatform({ ...script, "projects.create": () => assert.fail() });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const cwd = await repository(user);
  const { exitCode, stdout } = await user.berth(["link", "demo", "--ssh"], { cwd });
  assert.equal(exitCode, 0);
  assert.match(stdout, /git push berth trunk/);
  assert.equal(await git(user, cwd, ["remote", "get-url", "berth"]), project.git.ssh);
  const other = await user.berth(["git:remote", "demo"], { cwd });
  assert.match(other.stderr, /berth link <slug>/);
});

test("create leaves a remote alone that leads elsewhere, and says how to change it", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const cwd = await repository(user);
  await git(user, cwd, ["remote", "add", "berth", "ssh://git@elsewhere/main/other.git"]);
  const { exitCode, stdout } = await user.berth(["create", "demo", "--ssh"], { cwd });
  assert.equal(exitCode, 0);
  assert.ok(stdout.includes(`git remote set-url berth ${project.git.ssh}`));
  assert.equal(await git(user, cwd, ["remote", "get-url", "berth"]), "ssh://git@elsewhere/main/other.git");
});

test("create outside a repository names every step, and the key when there is none", async () => {
  await using platform = await startScriptedPlatform({ ...script, "ssh-keys.list": () => ({ ssh_keys: [] }) });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout } = await user.berth(["create", "demo", "--ssh"]);
  for (const step of ["berth keys add", "git init", `git remote add berth ${project.git.ssh}`, "git push berth"])
    assert.ok(stdout.includes(step), step);
});

test("git gets the password from the login, and only for the platform's own address", async () => {
  await using platform = await startScriptedPlatform({
    ...script,
    "projects.create": () =>
      sampleProject({ git: { ssh: project.git.ssh, https: `${platform.url}/git/main/demo.git` } }),
  });
  await using user = await cliUser();
  const cwd = await repository(user);
  await user.berth(["login", platform.url, "--token-file", "-"], { stdin: goodToken });
  await user.berth(["create", "demo"], { cwd });
  const helper = await git(user, cwd, ["config", "--local", `credential.${platform.url}.helper`]);
  assert.match(helper, /^!'.*\/bin\/berth' git-credential$/);
  assert.ok(!(await git(user, cwd, ["config", "--local", "--list"])).includes(goodToken));
  const { port } = new URL(platform.url);
  const asked = `protocol=http\nhost=127.0.0.1:${port}\n\n`;
  const filled = await run(
    { file: "git", args: ["credential", "fill"] },
    { cwd, env: { ...user.env, GIT_TERMINAL_PROMPT: "0" }, stdin: asked, timeoutMs: guardMs },
  );
  assert.ok(filled.stdout.includes(`password=${goodToken}`), filled.stderr);
  const foreign = await user.berth(["git-credential", "get"], { stdin: "protocol=http\nhost=elsewhere.example\n\n" });
  assert.deepEqual([foreign.exitCode, foreign.stdout], [0, ""]);
});

test("create outside a repository names the step that lets git ask the CLI for the password", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const { stdout } = await user.berth(["create", "demo"]);
  const helper = `git config "credential.${platform.url}.helper" "!'`;
  for (const step of ["git init", `git remote add berth ${platform.url}/`, helper])
    assert.ok(stdout.includes(step), step);
  assert.doesNotMatch(stdout, /\n\n/);
});

test("a private key is never sent", async () => {
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  await writeFile(join(user.home, "id"), "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n");
  assert.equal((await user.berth(["keys", "add", "id"])).exitCode, 2);
  assert.equal(platform.seen.length, 0);
  await writeFile(join(user.home, "id.pub"), "ssh-ed25519 AAAA me@laptop\n");
  assert.equal((await user.berth(["keys", "add", "id.pub"])).exitCode, 0);
  assert.deepEqual(platform.seen[0]?.body, { name: "me@laptop", public_key: "ssh-ed25519 AAAA me@laptop" });
});

test("--remote adds a remote of another name beside the first, which stays as it is", async () => {
  const url = (slug: string) => `https://berth.example/git/main/${slug}.git`;
  const made = (slug: string) => sampleProject({ slug, git: { ssh: "ssh://git@h/main/x.git", https: url(slug) } });
  const script: Script = { "projects.create": ({ body }) => made((body as { slug: string }).slug) };
  await using platform = await startScriptedPlatform(script);
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const git = async (...args: string[]) =>
    (await runOk({ file: "git", args }, { cwd: user.home, env: user.env })).stdout;
  await git("init", "-q");
  await user.berth(["create", "back"]);
  const first = await git("remote", "get-url", "berth");
  const { stdout } = await user.berth(["create", "front", "--remote", "front"]);
  assert.match(stdout, /The git remote "front" points to/);
  assert.match(stdout, /git push front/);
  assert.equal(await git("remote", "get-url", "berth"), first);
  assert.match(await git("remote", "get-url", "front"), /front\.git/);
});

test("rename leads the folder's git remote to the new name, and another project's remote stays", async () => {
  const renamed = sampleProject({
    slug: "shop",
    earlier_names: [{ slug: "demo", url: "http://demo.localhost:8080", until: "2026-02-01T03:04:05.678Z" }],
  });
  await using platform = await startScriptedPlatform({ ...script, "projects.rename": () => renamed });
  await using user = await cliUser({ url: platform.url, token: goodToken });
  const cwd = await repository(user);
  const url = () => git(user, cwd, ["remote", "get-url", "berth"]);
  await git(user, cwd, ["remote", "add", "berth", "ssh://git@127.0.0.1:2222/main/demo.git"]);
  assert.equal((await user.berth(["rename", "x", "-p", "other"], { cwd })).exitCode, 0);
  assert.match(await url(), /\/main\/demo\.git$/);
  const { stdout } = await user.berth(["rename", "shop"], { cwd });
  assert.deepEqual(platform.seen.at(-1)?.params, { slug: "demo" });
  assert.match(await url(), /\/main\/shop\.git$/);
  assert.match(stdout, /demo\.localhost:8080 answers until 2026-02-01/);
});
