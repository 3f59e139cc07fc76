import type { Command } from "commander";
import type { CliContext } from "../context.ts";
import { credentialFor } from "../git-credential.ts";

/** Adds `berth git-credential`, which git calls for a remote over HTTP. Hidden, because users don't call it. */
export function addGitCredential(program: Command, ctx: CliContext): void {
  program
    .command("git-credential <operation>", { hidden: true })
    .description("Give git the token of this login as a password; git calls this")
    .action(async (operation: string) => {
      // The protocol's `store` and `erase` are ignored: git must not change the login.
      if (operation === "get" && !ctx.environment.stdout.isTTY)
        ctx.output.raw(await credentialFor(ctx.environment, ctx.options));
    });
}
