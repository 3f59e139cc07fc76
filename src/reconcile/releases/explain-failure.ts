import type { Failure } from "../../ports/failure.ts";
import { explainMissingDatabase } from "../missing-database.ts";

export interface FailureFacts {
  /** The last output of the release command or the application, with secrets redacted. */
  readonly words: readonly string[];
  readonly hasDatabase: boolean;
}

interface Sign {
  readonly pattern: RegExp;
  readonly hint: (match: RegExpExecArray) => string;
}

const wantsRoot =
  /\b(?:chown|chgrp|setuid|setgid|setgroups|setresuid|setresgid|initgroups)\b.*Operation not permitted|\b(?:must|needs? to) be (?:run|started) (?:as|by) root\b/i;
const readOnly = /Read-only file system|\bEROFS\b/;
const sqlite = /\bSQLITE_(?:CANTOPEN|READONLY)|unable to open database file|attempt to write a readonly database/;
const lasting =
  'that must last, name it in berth.json, as in `"storage": "/data"`: the persistent folder is then mounted there';

const signs: readonly Sign[] = [
  {
    pattern: /(?:Cannot find module|Cannot find package) '((?:@[\w.-]+\/)?[\w-][\w.-]*)[^']*'/,
    hint: ([, name]) =>
      `\`${name}\` is not installed: add it to \`dependencies\` in package.json (the build removes devDependencies at its end), commit and push again.`,
  },
  {
    pattern: /ModuleNotFoundError: No module named '([^']+)'/,
    hint: ([, name = ""]) =>
      `Add the package that contains \`${name}\` to requirements.txt or pyproject.toml, or if \`${name.split(".")[0]}\` is a folder or file of your own that is not at the root, set its folder: \`berth env set PYTHONPATH=/app/src\`. Then commit and push again.`,
  },
  {
    pattern: /sh: (?:\d+: |line \d+: )?(\.{0,2}\/\S+): Permission denied/,
    hint: ([, file]) => `Make it executable: \`git update-index --chmod=+x ${file}\`, commit and push again.`,
  },
  {
    pattern: /sh: (?:\d+: |line \d+: )?(\.{0,2}\/\S+): not found/,
    hint: ([, file]) =>
      `Check that ${file} is in the repository and that its lines do not end in a carriage return (as on Windows). \`dos2unix\` and a .gitattributes with \`*.sh text eol=lf\` correct that.`,
  },
  {
    pattern: /sh: (?:\d+: |line \d+: )?(\S+): not found/,
    hint: ([, name]) =>
      `The command \`${name}\` is not installed: add its package to the dependencies, commit and push again.`,
  },
  {
    pattern: wantsRoot,
    hint: () =>
      "The program expects to start as root and to change users or file owners, but an application runs as one unprivileged user. Use the unprivileged variant of the image, or start it without that step.",
  },
  {
    pattern: sqlite,
    hint: () =>
      `The application cannot write to the folder of its SQLite file. For a folder ${lasting}. Everything else that an application writes is deleted with its replica, also in a VOLUME.`,
  },
  {
    pattern: readOnly,
    hint: () =>
      `An application can write only to its own folder (with a Dockerfile, the WORKDIR), /tmp, /run, its home folder and each VOLUME, of which nothing outlasts a deploy, and to $STORAGE_DIR. For a folder ${lasting}. For any other, declare it as a VOLUME, or let the application write elsewhere.`,
  },
];

/** Returns the failure with the output line that names the cause added to its summary, and with a hint for that cause; unchanged if no line does. */
export function explainFailure(given: Failure, { words, hasDatabase }: FailureFacts): Failure {
  const failure = explainMissingDatabase(given, { words, hasDatabase });
  if (failure.code !== "crash_on_boot" && failure.code !== "release_failed") return failure;
  const lines = words.map((line) => line.trim());
  if (failure.code === "crash_on_boot" && lines.every((line) => line === "")) return { ...failure, hint: noOutput };
  const telling = lines.find(
    (line) => errorLine.test(line) || wantsRoot.test(line) || readOnly.test(line) || sqlite.test(line),
  );
  const summary =
    telling === undefined ? failure.summary : `${failure.summary.replace(/\.$/, "")}: ${telling.slice(0, 300)}`;
  if (failure !== given) return { ...failure, summary };
  const text = lines.join("\n");
  for (const { pattern, hint } of signs) {
    const match = pattern.exec(text);
    if (match) return { ...failure, summary, hint: hint(match) };
  }
  return { ...failure, summary };
}

const noOutput =
  "The application's log has no line of this start. Run the start command with the same variables on your machine to see the reason.";

// Matches how Node, Python, Go and shells begin a line that names an error.
const errorLine =
  /^(?:(?:Uncaught )?[\w.]*(?:Error|Exception)(?: \[\w+\])?: |panic: |fatal(?: error)?: |error: |\/bin\/sh: )/;
