import type { Command } from "commander";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { facts } from "../render/table.ts";
import { oneLine, relativeTime } from "../render/text.ts";

/** `berth whoami`: who the token is, and what the platform is. */
export function addMe(program: Command, ctx: CliContext): void {
  addCommand(program, {
    usage: "whoami",
    summary: "Show who you are and what the platform isolates",
    examples: ["berth whoami", "berth whoami --json"],
  }).action(async () => {
    const client = await ctx.client();
    const me = await client.call("me.get");
    const { platform, token, organization } = me;
    ctx.output.result(me, (paint) =>
      facts(paint, [
        ["platform", `${client.baseUrl} (Berth ${platform.version})`],
        ["organization", `${organization.slug} (${oneLine(organization.name)})`],
        ["role", me.platform_admin ? `${me.role}, platform admin` : me.role],
        ["token", `${oneLine(token.name)} (${token.prefix}…), expires ${relativeTime(token.expires_at)}`],
        ["scopes", token.scopes.join(" ")],
        ["runtime", `${platform.runtime}, network: ${platform.network}`],
        ["isolation", platform.isolation.join(", ") || "none"],
        ...platform.missing.map(
          ({ part, effect, remedy }) => [paint.yellow("missing"), oneLine(`${part}: ${effect} ${remedy}`)] as const,
        ),
      ]),
    );
  });
}
