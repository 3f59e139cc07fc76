import { hostname } from "node:os";
import { join } from "node:path";
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { addCommand, commandGroup, actCommand, listCommand } from "../command-tree.ts";
import type { Client } from "../../contract/client.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { readInput } from "../input.ts";
import { oneLine, relativeTime } from "../render/text.ts";
import { oneNamed } from "../one-named.ts";

export const addSshKeys = commandGroup({
  name: "keys",
  summary: "List, add and remove SSH keys",
  alias: "ssh-keys",
  commands: () => [addList, addAdd, addRemove],
});

const addList = listCommand({
  row: "ssh-keys.list",
  usage: "list",
  summary: "List the organization's public keys",
  isDefault: true,
  examples: ["berth keys", "berth keys list --json"],
  items: (answer) => answer.ssh_keys,
  columns: {
    NAME: (key) => oneLine(key.name, 40),
    FINGERPRINT: (key) => key.fingerprint,
    ADDED: (key) => relativeTime(key.created_at),
    STATE: (key) => (key.active ? "active" : "its token ended"),
    ID: (key) => key.id,
  },
  empty: "There are no keys yet: `berth keys add ~/.ssh/id_ed25519.pub` adds one.",
});

function addAdd(keys: Command, ctx: CliContext): void {
  const examples = [
    "berth keys add ~/.ssh/id_ed25519.pub",
    "berth keys add deploy.pub --name ci",
    "ssh-add -L | head -n 1 | berth keys add -",
  ];
  addCommand(keys, {
    usage: "add [file]",
    summary: "Register a public key; without a file, the usual one in ~/.ssh",
    examples,
  })
    .option("--name <name>", "a display name; by default the key's own comment")
    .action(async (given: string | undefined, options: { name?: string }) => {
      const file = given ?? usualKey(ctx);
      const text = (await readInput(ctx, file)).trim();
      if (text.includes("PRIVATE KEY"))
        throw usageError(
          `${file} is a private key; it was not sent.`,
          "The public key is in the file whose name ends with .pub.",
        );
      const name = options.name ?? (text.split(/\s+/).slice(2).join(" ").slice(0, 100) || hostname());
      const key = await (await ctx.client()).call("ssh-keys.create", { body: { name, public_key: text } });
      ctx.output.result(key, () => `Added "${oneLine(key.name)}" (${key.fingerprint}).`);
    });
}

function usualKey({ environment }: CliContext): string {
  const names = ["id_ed25519.pub", "id_ecdsa.pub", "id_rsa.pub"];
  const found = names.map((name) => join(environment.home, ".ssh", name)).find((file) => existsSync(file));
  if (found === undefined) throw usageError("There is no public key in ~/.ssh.", "`ssh-keygen -t ed25519` makes one.");
  return found;
}

const addRemove = actCommand({
  row: "ssh-keys.delete",
  usage: "remove <key>",
  summary: "Remove a key, named by id, name or fingerprint",
  examples: ["berth keys remove laptop", "berth keys remove key_06bq… --yes"],
  find: findKey,
  warning: ({ thing: { name, fingerprint } }) =>
    `This removes the key "${oneLine(name)}" (${fingerprint}); pushes with it stop working at once.`,
  text: (_, _paint, { thing }) => `Removed "${oneLine(thing.name)}".`,
});

async function findKey(client: Client, given: string) {
  const { ssh_keys } = await client.call("ssh-keys.list");
  const names = ({ id, name, fingerprint }: (typeof ssh_keys)[number]) => [id, name, fingerprint];
  return oneNamed(ssh_keys, given, { noun: "key", names, list: "berth keys" });
}
