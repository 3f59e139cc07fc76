import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run, runOk, systemPath } from "../../kit/exec.ts";
import { readVersion } from "../../kit/own-version.ts";
import { redactor, type Redact } from "../../kit/redact.ts";
import { unitNames } from "../../kit/tenant-group.ts";
import { readTextOrEmpty, replaceFile } from "../../kit/whole-file.ts";
import { StartRefused, givenSettings, pathsIn, type Config } from "../config.ts";
import { isDataFolderHeld } from "../data-folder.ts";
import { upgradeFiles } from "../releases/upgrade-files.ts";
import { examine } from "./examine.ts";

/** Writes the archive and prints its path. */
export async function supportBundle(
  config: Config,
  args: readonly string[],
  say: (line: string) => void,
): Promise<void> {
  const [given, ...more] = args;
  if (more.length > 0 || given?.startsWith("-")) throw new StartRefused(bundleUsage);
  const file = resolve(given ?? `berth-support-${new Date().toISOString().slice(0, 10)}.tar.gz`);
  const folder = await mkdtemp(join(tmpdir(), "berth-support-"));
  try {
    const redact = redactorOf(config);
    const texts = await textsOf(config);
    for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), redact(text));
    const archive = join(folder, "archive");
    const args = ["--create", "--gzip", `--file=${archive}`, `--directory=${folder}`, ...Object.keys(texts)];
    await runOk({ file: "tar", args });
    replaceFile(file, await readFile(archive));
  } finally {
    await rm(folder, { recursive: true });
  }
  say(
    `Wrote ${file}. It names projects and hostnames, and no secrets that Berth knows of: read it before you send it.`,
  );
}

export const bundleUsage = `Usage: berthd support-bundle [FILE]

  Writes a tar.gz archive for a question about Berth: versions, settings without secrets, the findings of \`berthd doctor\`, checks, alerts and
  the newest log lines. It names projects and hostnames; read it before you send it.`;

async function textsOf(config: Config): Promise<Readonly<Record<string, string>>> {
  const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  const token = readTextOrEmpty(pathsIn(config.dataDir).adminToken).trim();
  const host = config.listen === "0.0.0.0" || config.listen === "::" ? "localhost" : config.listen;
  const ask = async (path: string) => {
    // Without Berth, another program that listens there would get the token.
    if (!isDataFolderHeld(config.dataDir)) return "Berth does not run.";
    const headers = { authorization: `Bearer ${token}` };
    const signal = AbortSignal.timeout(askTimeoutMs);
    const url = `http://${host}:${config.httpPort}${path}`;
    return fetch(url, { headers, signal }).then(
      (answer) => answer.text(),
      (error: unknown) => String(error),
    );
  };
  const answers = Object.entries(asked).map(async ([name, path]) => [`${name}.json`, `${await ask(path)}\n`] as const);
  return {
    "versions.json": json({ ...readVersion(), node: process.version, platform: process.platform, arch: process.arch }),
    "system.txt": `${readTextOrEmpty("/etc/os-release")}${readTextOrEmpty("/proc/version")}${readTextOrEmpty("/proc/meminfo")}`,
    "settings.txt": settingsText(),
    "doctor.json": json(await examine(config, { fix: false })),
    ...Object.fromEntries(await Promise.all(answers)),
    "upgrade.txt": readTextOrEmpty(upgradeFiles(config.dataDir).steps),
    "log.txt": await newestLog(config),
  };
}

const askTimeoutMs = 10_000;
const asked = {
  readyz: "/readyz",
  status: "/v1/status",
  alerts: "/v1/alerts?all=true",
  overview: "/v1/platform/overview",
  installed: "/v1/platform/versions",
  backups: "/v1/platform/backups",
};

const isSecret = (name: string) => /SECRET$|PASSWORD|TOKEN|_EAB$|_REGISTRY$|WEBHOOK_URL$/.test(name);

// Also in an address that is not well-formed.
const login = /:\/\/(.*)@/;
const passwordOption = /(?<=\bpassword=)[^&\s]+/;

/** Masks secrets by their names, and logins in addresses. */
function settingsText(): string {
  const lines = Object.entries(givenSettings()).map(
    ([name, value]) =>
      `${name}=${isSecret(name) ? "[redacted]" : value.replace(login, "://[redacted]@").replace(passwordOption, "[redacted]")}\n`,
  );
  return lines.join("");
}

/** Redacts what the settings and the data folder keep secret, wherever it appears, and links that sign in. */
function redactorOf(config: Config): Redact {
  const { adminToken, keyFile } = pathsIn(config.dataDir);
  const secrets = Object.entries(givenSettings()).flatMap(([name, value]) =>
    isSecret(name) ? [value] : [login.exec(value)?.[1]?.split(":")[1] ?? "", passwordOption.exec(value)?.[0] ?? ""],
  );
  const files = [adminToken, config.keyFile ?? keyFile, config.s3SecretKeyFile ?? ""].filter((file) => file !== "");
  const redact = redactor([...secrets, ...files.map((file) => readTextOrEmpty(file).trim())]);
  return (text) => redact(text).replace(/(?<=\/sign-in#)\S+/g, "[redacted]");
}

const newestLines = 5000;

async function newestLog({ dataDir, isRoot }: Config): Promise<string> {
  const args = [...(isRoot ? [] : ["--user"]), "-u", unitNames.controlPlane, "-n", String(newestLines), "--no-pager"];
  const journal = await run({ file: "journalctl", args }, { env: { PATH: systemPath } }).catch(() => undefined);
  if (journal?.exitCode === 0 && !journal.stdout.startsWith("-- No entries")) return journal.stdout;
  const own = await readFile(join(pathsIn(dataDir).logs, "berthd.log"), "utf8").catch(() => "");
  return own === ""
    ? "The control plane's output is where it was started.\n"
    : own.split("\n").slice(-newestLines).join("\n");
}
