import { stat } from "node:fs/promises";
import type { Command } from "commander";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { currentProject } from "../current-project.ts";
import { saveFile } from "../save-file.ts";
import { formatOf, receiveFile } from "./database-files.ts";

/** Adds `berth backups download`: writes a backup to a file for pg_restore, psql or tar. */
export function addDownload(backups: Command, ctx: CliContext): void {
  addCommand(backups, {
    usage: "download <id>",
    summary: "Save a backup as a file for pg_restore or as SQL text, and files as a tar archive (owners only)",
    examples: ["berth backups download bak_06bq…", "berth backups download bak_06bq… --format plain -o demo.sql"],
  })
    .option("--format <custom|plain>", "for pg_restore, or SQL text", "custom")
    .option("--age", "encrypted: only the platform's recovery key opens it, with the program age")
    .option("-o, --output <file>", "write into this file, which must not exist yet")
    .action(async (backup_id: string, options: { format: string; age?: boolean; output?: string }) => {
      const format = formatOf(options);
      const encrypted = options.age === true;
      const slug = await currentProject(ctx);
      const client = await ctx.client();
      const { content } = await client.call("backups.get", { params: { id: backup_id } });
      const { id } = await client.call("database.dump", { params: { slug }, body: { backup_id, format, encrypted } });
      const ending = content === "files" ? "tar" : format === "plain" ? "sql" : "dump";
      const name = options.output ?? `${slug}-${backup_id}.${ending}${encrypted ? ".age" : ""}`;
      const file = await saveFile(ctx, name, { replaces: false }, (target) => receiveFile(ctx, { slug, id, target }));
      const { size: bytes } = await stat(file);
      ctx.output.result({ file, bytes }, (paint) => `${paint.green("Saved")} ${name}, ${bytesText(bytes)}`);
    });
}
