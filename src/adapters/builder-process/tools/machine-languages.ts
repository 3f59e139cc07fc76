import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { run } from "../../../kit/exec.ts";

/** Languages installed on this machine, besides Node.js, Python and Go. Null means not installed. */
export interface MachineLanguages {
  /** The folder with `bin/cargo` and `bin/rustc`. */
  readonly rustRoot: string | null;
  /** Java development kits; those of JAVA_HOME and PATH come first. */
  readonly jdks: readonly { readonly version: string; readonly folder: string }[];
  /** The folders with `bin/mvn` and `bin/gradle`. */
  readonly maven: string | null;
  readonly gradle: string | null;
  /** Programs below /usr, where sandboxes see them. */
  readonly ruby: string | null;
  readonly php: string | null;
  readonly composer: string | null;
}

const timeoutMs = 10_000;

/** Finds languages with the environment (PATH, HOME) of the person who started the platform. */
export async function findLanguages(env: Readonly<Record<string, string>>): Promise<MachineLanguages> {
  return {
    rustRoot: await rustRoot(env),
    jdks: findJdks(env),
    maven: folderOf(env, "mvn"),
    gradle: folderOf(env, "gradle"),
    ...{ ruby: systemProgram("ruby"), php: systemProgram("php"), composer: systemProgram("composer") },
  };
}

/** Returns the selected Rust toolchain's folder. rustup's programs only dispatch to it, so builds get the toolchain itself. */
async function rustRoot(env: Readonly<Record<string, string>>): Promise<string | null> {
  const path = `${env["PATH"] ?? ""}:${env["HOME"] ?? ""}/.cargo/bin`;
  const asked = await run(
    { file: "/usr/bin/env", args: ["rustc", "--print", "sysroot"] },
    { env: { ...env, PATH: path }, timeoutMs },
  ).catch(() => undefined);
  const root = asked?.exitCode === 0 ? asked.stdout.trim() : "";
  return root === "" ? null : root;
}

const javaFolders = "/usr/lib/jvm";

/** Finds Java development kits that have a compiler. Debian has several names for one kit, so each is listed once. */
function findJdks(env: Readonly<Record<string, string>>): MachineLanguages["jdks"] {
  const below = existsSync(javaFolders) ? readdirSync(javaFolders).map((name) => join(javaFolders, name)) : [];
  const first = [env["JAVA_HOME"], folderOf(env, "javac")].filter((each) => each !== null && each !== undefined);
  const kits = [...first, ...below.toSorted()].filter((folder) => existsSync(join(folder, "bin/javac")));
  return [...new Set(kits.map((folder) => realpathSync(folder)))].flatMap((folder) => {
    const version = versionOf(folder);
    return version === undefined ? [] : [{ version, folder }];
  });
}

function versionOf(folder: string): string | undefined {
  const file = join(folder, "release");
  if (!existsSync(file)) return undefined;
  return /^JAVA_VERSION="([\d.]+)/m.exec(readFileSync(file, "utf8"))?.[1];
}

function systemProgram(name: string): string | null {
  return [`/usr/bin/${name}`, `/usr/local/bin/${name}`].find((path) => existsSync(path)) ?? null;
}

/** Returns the folder whose `bin` holds this program, after following links. */
function folderOf(env: Readonly<Record<string, string>>, program: string): string | null {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder.startsWith("/"));
  const found = folders.map((folder) => join(folder, program)).find((file) => existsSync(file));
  return found === undefined ? null : dirname(dirname(realpathSync(found)));
}
