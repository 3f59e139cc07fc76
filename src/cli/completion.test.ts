import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { cliUser } from "../../test/support/cli.ts";
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
    [["berth", "database", "c"], ["create"]],
    [["berth", "completion", "z"], ["zsh"]],
  ];
  for (const [words, expected] of cases) {
    const ask =
      'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _berth; printf "%s\\n" "${COMPREPLY[@]}"';
    const { stdout } = await runOk({ file: "bash", args: ["--norc", "-c", ask, "bash", made.file, ...words] });
    assert.deepEqual(stdout.trim().split("\n"), expected, words.join(" "));
  }
});

async function isThere(program: string): Promise<boolean> {
  return run({ file: program, args: ["--version"] }).then(
    () => true,
    () => false,
  );
}
