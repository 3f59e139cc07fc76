import { facts, oneLine, relativeTime } from "../render/text.ts";
import { rowCommand } from "../command-tree.ts";

export const addMe = rowCommand({
  row: "me.get",
  usage: "whoami",
  summary: "Show who you are and what the platform isolates",
  examples: ["berth whoami", "berth whoami --json"],
  text: ({ platform, token, organization, ...me }, paint, { baseUrl }) =>
    facts(paint, [
      ["platform", `${baseUrl} (Berth ${platform.version})`],
      ["organization", `${organization.slug} (${oneLine(organization.name)})`],
      ["role", me.platform_admin ? `${me.role}, platform admin` : me.role],
      ["token", `${oneLine(token.name)} (${token.prefix}…), expires ${relativeTime(token.expires_at)}`],
      ["scopes", token.scopes.join(" ")],
      ["SSH host key", platform.ssh_host_key],
      ["runtime", `${platform.runtime}, network: ${platform.network}`],
      ["isolation", platform.isolation.join(", ") || "none"],
      ...platform.missing.map(
        ({ part, effect, remedy }) => [paint.yellow("missing"), oneLine(`${part}: ${effect} ${remedy}`)] as const,
      ),
    ]),
});
