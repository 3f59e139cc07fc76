import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { cliUser } from "../../test/support/cli.ts";
import { sampleProject } from "../../test/support/contract-samples.ts";
import { eventually } from "../../test/support/eventually.ts";
import { goodToken, startScriptedPlatform } from "../../test/support/scripted-platform.ts";
import { run, runOk } from "../kit/exec.ts";

async function script(shell: string) {
  const user = await cliUser();
  const { stdout } = await user.berth(["completion", shell]);
  const file = join(user.home, `berth.${shell}`);
  await writeFile(file, stdout);
  return { file, [Symbol.asyncDispose]: () => user[Symbol.asyncDispose]() };
}

for (const shell of ["bash", "zsh", "fish"]) {
  test(`the script for ${shell} is one that ${shell} can read`, async (t) => {
    if (!(await isThere(shell))) return t.skip(`${shell} is not installed`);
    await using made = await script(shell);
    await runOk({ file: shell, args: ["-n", made.file] });
  });
}

test("bash completes commands, their verbs, options and fixed words", async () => {
  await using made = await script("bash");
  const cases: [string[], string[]][] = [
    [
      ["berth", "dep"],
      ["deployments", "deploy"],
    ],
    [
      ["berth", "projects", "s"],
      ["show", "settings"],
    ],
    [["berth", "-p", "demo", "logs", "--so"], ["--source"]],
    [["berth", "database", "cr"], ["create"]],
    [["berth", "completion", "z"], ["zsh"]],
  ];
  for (const [words, expected] of cases) {
    const ask =
      'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _berth; printf "%s\\n" "${COMPREPLY[@]}"';
    const { stdout } = await runOk({ file: "bash", args: ["--norc", "-c", ask, "bash", made.file, ...words] });
    assert.deepEqual(stdout.trim().split("\n"), expected, words.join(" "));
  }
});

const variable = { value: "••••••••", system: false, updated_at: null } as const;
const platformScript = {
  "projects.list": () => ({ projects: [sampleProject(), sampleProject({ slug: "shop" })] }),
  "env.list": () => ({
    variables: [
      { ...variable, key: "API_KEY" },
      { ...variable, key: "PORT", system: true },
    ],
  }),
};

/** What each shell runs to complete the words; the user is typing the last one. */
const asking: Readonly<Record<string, string>> = {
  bash: 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _berth; printf "%s\\n" "${COMPREPLY[@]}"',
  zsh: 'compdef() { : }; _describe() { print -l -- "${answers[@]}" }; source "$0"; words=("$@"); CURRENT=$#; _berth',
  fish: 'source $argv[1]; complete -C "$argv[2..-1]" | string split -f1 \\t; true',
};

for (const shell of ["bash", "zsh", "fish"]) {
  test(`${shell} completes the platform's own words: projects and keys of variables`, async (t) => {
    if (!(await isThere(shell))) return t.skip(`${shell} is not installed`);
    await using platform = await startScriptedPlatform(platformScript);
    await using user = await cliUser({ url: platform.url, token: goodToken });
    await using made = await script(shell);
    const bin = join(user.home, "bin");
    await mkdir(bin);
    const main = fileURLToPath(new URL("main.ts", import.meta.url));
    await writeFile(join(bin, "berth"), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`, { mode: 0o755 });
    const env = { ...user.env, PATH: `${bin}:${user.env["PATH"]}` };
    const ask = asking[shell] as string;
    const complete = async (...words: string[]) => {
      const args = shell === "fish" ? ["-N", "-c", ask, made.file, ...words] : ["-c", ask, made.file, ...words];
      return (await runOk({ file: shell, args }, { env })).stdout.trim().split("\n");
    };
    // If the platform needs more than two seconds, the command prints no words. On a busy machine the test therefore repeats it.
    const completes = (word: string, ...words: string[]) =>
      eventually(
        async () => {
          const found = await complete(...words);
          return found.includes(word) && found;
        },
        `"${words.join(" ")}" is completed with ${word}`,
      );
    assert.ok((await completes("demo", "berth", "projects", "show", "")).includes("shop"));
    await completes("shop", "berth", "env", "-p", "");
    assert.ok(!(await completes("API_KEY", "berth", "-p", "demo", "env", "unset", "")).includes("PORT"));
    await keepForLong(join(dirname(user.configFile), "completion.json"));
    const asked = platform.seen.length;
    await complete("berth", "-p", "demo", "env", "unset", "A");
    assert.equal(platform.seen.length, asked, "the answer is kept for a moment");
  });
}

/** Gives the cached answer a future date, so that it stays fresh on a slow machine. */
async function keepForLong(file: string): Promise<void> {
  const kept = JSON.parse(await readFile(file, "utf8")) as object;
  await writeFile(file, JSON.stringify({ ...kept, at: Date.now() + 3_600_000 }));
}

async function isThere(program: string): Promise<boolean> {
  return run({ file: program, args: ["--version"] }).then(
    () => true,
    () => false,
  );
}
