import { fileURLToPath } from "node:url";
import { readConfig } from "./config-file.ts";
import type { Environment, GlobalOptions } from "./environment.ts";
import { findPlatform } from "./find-platform.ts";
import { setLocalConfig } from "./git.ts";
import { readStdin } from "./prompts.ts";

/** Makes git get this platform's password from the CLI, in this repository only; git's files hold no token. False if that failed. */
export async function answerForGit(environment: Environment, remote: string): Promise<boolean> {
  return setLocalConfig(environment, ...passwordSetting(remote));
}

export function passwordSetting(remote: string): [name: string, value: string] {
  const starter = fileURLToPath(new URL("../../bin/berth", import.meta.url));
  // git runs this line in a shell, so the path is quoted for a shell (gitcredentials(7)).
  const helper = `!'${starter.replaceAll("'", `'\\''`)}' git-credential`;
  return [`credential.${new URL(remote).origin}.helper`, helper];
}

/** Answers one request of git's credential protocol: the token of the login whose platform has the requested origin, else nothing. */
export async function credentialFor(environment: Environment, options: GlobalOptions): Promise<string> {
  const asked = new Map(
    (await readStdin(environment)).split("\n").map((line) => line.split("=", 2) as [string, string]),
  );
  const origin = URL.parse(`${asked.get("protocol")}://${asked.get("host")}`)?.origin;
  const token = origin === undefined ? undefined : await tokenFor(environment, options, origin);
  return token === undefined ? "" : `username=berth\npassword=${token}\n`;
}

async function tokenFor(environment: Environment, options: GlobalOptions, origin: string): Promise<string | undefined> {
  const meant = await findPlatform(environment, options);
  const config = await readConfig(environment.configFile);
  const platforms = [meant, ...Object.values(config.contexts)];
  return platforms.find(({ url, token }) => token !== undefined && URL.parse(url)?.origin === origin)?.token;
}
