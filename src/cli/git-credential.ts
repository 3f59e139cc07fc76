import { fileURLToPath } from "node:url";
import { readConfig } from "./config-file.ts";
import { findPlatform } from "./connection.ts";
import type { CliContext } from "./context.ts";
import type { Environment } from "./environment.ts";
import { setLocalConfig } from "./git.ts";
import { readStdin } from "./prompts.ts";

/** Makes git ask the CLI for the password of this platform, in the current repository only. The token itself stays out of git's files. */
export async function answerForGit(environment: Environment, remote: string): Promise<boolean> {
  return setLocalConfig(environment, ...passwordSetting(remote));
}

/** The name and the value of that setting. */
export function passwordSetting(remote: string): [name: string, value: string] {
  const starter = fileURLToPath(new URL("../../bin/berth", import.meta.url));
  // git reads this line with a shell, so the path is quoted for one (gitcredentials(7)).
  const helper = `!'${starter.replaceAll("'", `'\\''`)}' git-credential`;
  return [`credential.${new URL(remote).origin}.helper`, helper];
}

/** Answers one question of git's credential protocol: the token of the login whose platform has this origin, else nothing. */
export async function credentialFor(ctx: CliContext): Promise<string> {
  const asked = new Map(
    (await readStdin(ctx.environment)).split("\n").map((line) => line.split("=", 2) as [string, string]),
  );
  const origin = URL.parse(`${asked.get("protocol")}://${asked.get("host")}`)?.origin;
  const token = origin === undefined ? undefined : await tokenFor(ctx, origin);
  return token === undefined ? "" : `username=berth\npassword=${token}\n`;
}

async function tokenFor(ctx: CliContext, origin: string): Promise<string | undefined> {
  const meant = await findPlatform(ctx.environment, ctx.options);
  const config = await readConfig(ctx.environment.configFile);
  const platforms = [meant, ...Object.values(config.contexts)];
  return platforms.find(({ url, token }) => token !== undefined && URL.parse(url)?.origin === origin)?.token;
}
