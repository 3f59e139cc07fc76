import type { Answer, Client } from "../../contract/client.ts";
import { commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { oneNamed } from "../one-named.ts";
import { oneLine, relativeTime } from "../render/text.ts";

type Account = Answer<"people.accounts">["accounts"][number];

export const addAccounts = commandGroup({
  name: "accounts",
  summary: "List, disable and rescue the people of all organizations (for the platform's operator)",
  commands: () => [
    listCommand({
      row: "people.accounts",
      usage: "list",
      summary: "List the people of all organizations",
      isDefault: true,
      examples: ["berth accounts", "berth accounts list --json"],
      items: (answer) => answer.accounts,
      columns: {
        NAME: (account: Account) => oneLine(account.name, 40),
        EMAIL: (account) => oneLine(account.email ?? "", 40),
        ORGANIZATIONS: (account) => oneLine(account.organizations.join(", ") || "none", 40),
        STATE: ({ disabled_at: at, can_sign_in: can }) =>
          at !== null ? "disabled" : can ? "active" : "cannot sign in",
        USED: (account) => relativeTime(account.last_used_at),
        ID: (account) => account.id,
      },
      empty: "Nobody has an account here yet: `berth members invite` makes a link for one person.",
    }),
    actCommand({
      row: "people.link",
      usage: "link <person>",
      summary: "Make a link that signs a person in once, within 15 minutes, when they lost every other way",
      examples: ["berth accounts link Ada"],
      find: findAccount,
      warning: ({ thing: { name } }) => `Whoever opens this link acts as ${oneLine(name)}.`,
      text: ({ url }) => url ?? "",
      note: () => "Hand it to this person alone; it is shown only now. They add a passkey on *Your session*.",
    }),
    actCommand({
      row: "people.disable",
      usage: "disable <person>",
      summary: "Disable a person, named by id, name or e-mail address: everything they use ends at once",
      examples: ["berth accounts disable Ada"],
      find: findAccount,
      warning: ({ thing: { name } }) =>
        `This ends the sessions, tokens, SSH keys and invitations of ${oneLine(name)} in all organizations.`,
      text: ({ name }) => `Disabled ${oneLine(name)}.`,
    }),
    rowCommand({
      row: "people.enable",
      usage: "enable <person>",
      summary: "Let a disabled person sign in again; what ended stays ended",
      examples: ["berth accounts enable Ada"],
      find: findAccount,
      text: ({ name }) => `Enabled ${oneLine(name)}.`,
    }),
  ],
});

async function findAccount(client: Client, given: string) {
  const { accounts } = await client.call("people.accounts");
  const names = ({ id, name, email }: Account) => [id, name, email ?? id];
  return oneNamed(accounts, given, { noun: "person", names, list: "berth accounts" });
}
