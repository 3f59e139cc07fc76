import type { Command } from "commander";
import type { CliContext } from "../context.ts";
import { credentialFor } from "../git-credential.ts";

/** `berth git-credential`: what git calls for a remote over HTTP. Hidden, since no person needs it. */
export function addGitCredential(program: Command, ctx: CliContext): void {
  program
    .command("git-credential <operation>", { hidden: true })
    .description("Give git the token of this login as a password; git calls this")
    .action(async (operation: string) => {
      // `store` and `erase` are other questions of the protocol; the login is not git's to change.
      if (operation === "get" && !ctx.environment.stdout.isTTY) ctx.output.raw(await credentialFor(ctx));
    });
}
