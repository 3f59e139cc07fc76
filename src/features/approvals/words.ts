import type { RouteName, RouteNamed } from "../../contract/routes.ts";

/** The rows for which a token in approval mode needs an approval. */
export type GatedRoute = { [N in RouteName]: RouteNamed<N>["approval"] extends true ? N : never }[RouteName];

/** What a request is about, as the handler noted it. */
export interface Asked {
  readonly target: string | null;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** What else of the project a request touches: the decision page shows these figures. */
export type Touched = "hostnames" | "database" | "table" | "backup" | "requests";

interface Words {
  /** What is asked for, as an order, without the project. */
  readonly order: (asked: Asked) => string;
  /** What follows from it, in sentences. */
  readonly effect: (asked: Asked) => string;
  /** Nothing when absent. */
  readonly touches?: readonly Touched[];
}

const text = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : "");
const listed = (value: unknown) => (Array.isArray(value) ? value.join(", ") : "");
const called = ({ target, detail }: Asked) => (typeof detail["name"] === "string" ? `"${detail["name"]}"` : target);
const minute = (at: unknown) => text(at).slice(0, 16).replace("T", " ");

/** A deploy needs an approval when its rehearsal shows that it removes data; its row is not gated. */
type AskedFor = GatedRoute | "deployments.create";

const words: { readonly [N in AskedFor]: Words } = {
  "deployments.create": {
    order: ({ detail }) =>
      `Deploy the commit ${text(detail["commit"]).slice(0, 8)}, whose release command removes data`,
    effect: () =>
      "On a copy of the data, its release command did what is shown below. Backups of the database and of the files are completed before it runs on the data itself.",
    touches: ["database", "backup", "requests"],
  },
  "projects.delete": {
    order: ({ target, detail }) =>
      detail["purge"] === true ? `Delete the project ${target} for good` : `Delete the project ${target}`,
    effect: ({ detail }) =>
      detail["purge"] === true
        ? "Code, database, storage, logs and backups are deleted for good. One verified backup of the database is kept."
        : "It stops serving at once. Everything is kept, and undeleting brings it back.",
    touches: ["hostnames", "database", "backup", "requests"],
  },
  "domains.detach": {
    order: ({ target }) => `Detach the domain ${target}`,
    effect: ({ target }) => `${target} stops being served at once. The project's other addresses stay.`,
  },
  "env.delete": {
    order: ({ target }) => `Remove the variable ${target}`,
    effect: () => "The application restarts without it. Earlier deployments keep their value.",
  },
  "cron.set": {
    order: ({ target }) => `Let the cron job ${target} run a command`,
    effect: () =>
      "The command below runs on the schedule with the application's variables and storage, and may change its database.",
    touches: ["database", "backup"],
  },
  "cron.import": {
    order: () => "Import cron jobs that run commands",
    effect: () =>
      "The commands below run on their schedules with the application's variables and storage, and may change its database.",
    touches: ["database", "backup"],
  },
  "cron.delete": {
    order: ({ target }) => `Delete the cron job ${target}`,
    effect: () => "The job and the list of its runs are deleted.",
  },
  "data.end_connection": {
    order: ({ target }) => `End the connection ${target} to the database`,
    effect: () => "What it has not committed is rolled back. The application may connect again at once.",
  },
  "data.update": {
    order: ({ target }) => `Change a row of the table ${target}`,
    effect: () => "The one row that the key below names gets the values below in the live database.",
    touches: ["backup"],
  },
  "data.delete": {
    order: ({ target }) => `Delete a row of the table ${target}`,
    effect: () => "The one row that the key below names is deleted from the live database.",
    touches: ["table", "backup"],
  },
  "database.connect": {
    order: () => "Work in the database with a PostgreSQL client",
    effect: () => "The client may read, change and delete everything in the database.",
    touches: ["database", "backup"],
  },
  "database.import": {
    order: () => "Load a dump into a new database",
    effect: () => "Berth creates a database beside the live one, which does not change.",
  },
  "branches.create": {
    order: ({ target }) => `Copy the database into the branch ${target}, unmasked`,
    effect: () => "Everybody who may read the project's data can read the copy. The live database does not change.",
    touches: ["database"],
  },
  "branches.delete": {
    order: ({ target }) => `Delete the branch ${target} of the database`,
    effect: () => "What was written to it is gone for good. The live database stays as it is.",
  },
  "backups.restore": {
    order: ({ detail }) =>
      `Restore the ${detail["restore_to"] === undefined ? "backup" : "database"} of ${minute(detail["taken_at"])} UTC beside the live data`,
    effect: () => "Berth creates a database or a folder beside the live one, which does not change.",
  },
  "backups.restore_path": {
    order: ({ detail }) =>
      `Replace ${text(detail["path"])} in the storage folder by ${detail["taken_at"] === undefined ? `the one in .restored/${text(detail["folder"])}` : `that of the backup of ${minute(detail["taken_at"])} UTC`}`,
    effect: () => "What is there now is moved to a folder below .restored, from where it can be put back.",
  },
  "backups.set_archive": {
    order: ({ target }) => `Turn the database's history ${target}`,
    effect: ({ target }) =>
      target === "off"
        ? "From now on, only its backups can be restored. What was kept stays until its retention ends."
        : "Any moment from now on can be restored. The database may restart once, which takes about a second.",
  },
  "backups.promote": {
    order: ({ target, detail: { deployment } }) =>
      `Let the application use the database ${target}${deployment === undefined ? "" : `, and go back to deployment ${text(deployment)}`}`,
    effect: () => "The application restarts with it. The database that is live now is kept beside it.",
    touches: ["database", "requests"],
  },
  "backups.drop": {
    order: ({ target }) => `Drop the database ${target} beside the live one`,
    effect: () => "It is gone for good. The live database stays as it is.",
  },
  "disk.write": {
    order: ({ detail }) =>
      `Replace ${text(detail["path"])} in the storage folder by a file of ${text(detail["size_bytes"])} bytes`,
    effect: ({ detail }) =>
      `What is there now is moved to a folder below .restored, from where it can be put back. The new file has the SHA-256 ${text(detail["sha256"])}.`,
  },
  "disk.remove": {
    order: ({ detail }) => `Delete ${text(detail["path"])} from the storage folder`,
    effect: () => "The file, or the folder with everything in it, is deleted for good.",
  },
  "disk.limits": {
    order: ({ target }) => `Change the disk limits of the project ${target}`,
    effect: () =>
      "Backups beyond their limit are deleted for good, the oldest first. Beyond the other limits nothing more can be written.",
  },
  "runs.create": {
    order: () => "Run a one-off command",
    effect: () => "It runs with the application's variables and storage, and may change its database.",
    touches: ["database", "backup"],
  },
  "follow.set": {
    order: ({ target, detail }) => `Follow the branch ${text(detail["branch"])} of ${target}`,
    effect: () => "From then on, everybody who may push to that branch can deploy.",
  },
  "follow.delete": {
    order: ({ target }) => `Stop following ${target}`,
    effect: () => "Deploy key, token, secret and deliveries are deleted. The live deployment stays.",
  },
  "tokens.create": {
    order: ({ detail }) => `Create the token "${text(detail["name"])}" with the role ${text(detail["role"])}`,
    effect: ({ detail }) =>
      `It is in approval mode too, and is valid for at most ${text(detail["expires_in_days"])} days.`,
  },
  "tokens.delete": {
    order: (asked) => `Revoke the token ${called(asked)}`,
    effect: () => "It stops working within a second, and its open approval requests end.",
  },
  "people.update": {
    order: (asked) => `Change the rights of ${called(asked)}`,
    effect: ({ detail }) => `The role is then ${text(detail["role"])}; it takes effect within a second.`,
  },
  "people.remove": {
    order: (asked) => `Remove ${called(asked)} from the organization`,
    effect: () => "Their sessions, and the tokens and SSH keys that they created here, end within a second.",
  },
  "people.link": {
    order: (asked) => `Make a link that signs in as ${called(asked)}`,
    effect: () => "Whoever opens it within 15 minutes acts as this person, once.",
  },
  "people.disable": {
    order: (asked) => `Disable ${called(asked)} in all organizations`,
    effect: () => "Their sessions, tokens, SSH keys and invitations end within a second.",
  },
  "people.invite": {
    order: ({ detail }) => `Invite a person with the role ${text(detail["role"])}`,
    effect: () =>
      "Whoever has the link can join within seven days, once, as a person without approval mode. The token that asks gets the link unless it is mailed.",
  },
  "people.revoke": {
    order: (asked) => `Revoke the invitation ${called(asked)}`,
    effect: () => "Its link no longer works. Whoever has joined stays.",
  },
  "me.leave": {
    order: (asked) => `Let ${called(asked)} leave the organization`,
    effect: () => "The person's sessions, and the tokens and SSH keys that they created here, end within a second.",
  },
  "me.delete_passkey": {
    order: () => "Delete a passkey",
    effect: () => "Its person no longer signs in with it.",
  },
  "me.unlink_identity": {
    order: () => "Unlink an account of an identity provider",
    effect: () => "Its person no longer signs in with it.",
  },
  "providers.set": {
    order: ({ target, detail }) => `Let people sign in with ${text(detail["issuer"])} (${target})`,
    effect: () => "The operator of this issuer can sign in as everybody who has an account with it.",
  },
  "providers.delete": {
    order: ({ target }) => `Remove the identity provider ${target}`,
    effect: () => "People who have no other way to sign in need an invitation or the operator's help. Sessions go on.",
  },
  "ssh-keys.delete": {
    order: (asked) => `Remove the SSH key ${called(asked)}`,
    effect: () => "It stops working at once.",
  },
  "webhooks.update": {
    order: (asked) => `Change the webhook ${called(asked)}: ${listed(asked.detail["changed"])}`,
    effect: () => "Events may no longer reach the people who watch with it. The body below shows the new values.",
  },
  "webhooks.delete": {
    order: (asked) => `Remove the webhook ${called(asked)}`,
    effect: () => "Nothing more is sent, and the list of its deliveries is deleted.",
  },
  "previews.delete": {
    order: ({ target }) => `Delete the preview of the branch ${target}`,
    effect: () => "Its database, files and history are deleted for good.",
  },
  "previews.unpin": {
    order: ({ target }) => `Unpin the preview of the branch ${target}`,
    effect: () => "It ends as other previews do: its database, files and history are then deleted for good.",
  },
  "previews.promote": {
    order: ({ target }) => `Deploy what runs in the preview of the branch ${target}`,
    effect: ({ detail }) =>
      `Its image serves the project's visitors, with the project's variables and data. Look at it first: ${String(detail["url"])} (commit ${String(detail["commit"]).slice(0, 8)}).`,
  },
  "registries.set": {
    order: ({ target }) => `Replace the login of the registry ${target}`,
    effect: () => "The present user and password are overwritten, and builds use the new ones.",
  },
  "registries.delete": {
    order: ({ target }) => `Forget the login of the registry ${target}`,
    effect: () => "Images that were built stay.",
  },
  "orgs.create": {
    order: ({ target }) => `Create the organization ${target}`,
    effect: () => "It gets an owner token of its own.",
  },
  "orgs.rescue": {
    order: ({ target }) => `Create an owner token for the organization ${target}`,
    effect: () => "Its holder may do everything in that organization.",
  },
  "orgs.disable": {
    order: ({ target }) => `Suspend the organization ${target}`,
    effect: () =>
      "Its applications, tokens and cron jobs stop at once. Nothing is deleted, and enabling brings it back.",
  },
  "platform.join": {
    order: () => "Show the script that joins a machine to the swarm",
    effect: () =>
      "It contains the swarm's secrets: anyone who has it can add machines that run every organization's code.",
  },
  "platform.upgrade": {
    order: ({ target }) => `Upgrade the platform to ${target}`,
    effect: ({ detail }) =>
      `Applications go on. Only signed releases are installed; one that does not serve is replaced again.${detail["without_backup"] === true ? " The platform is not backed up before: what the upgrade loses of its database is only in earlier backups." : ""}`,
  },
  "platform.finalize": {
    order: ({ target }) => `Finalize the database of Berth ${target}`,
    effect: () => "The version before can then no longer run on it: there is no way back.",
  },
  "platform.dismiss": {
    order: ({ target }) => `Remove the machine ${target} from the swarm`,
    effect: () => "It gets no replicas any more. Those that the swarm still counts on it start elsewhere.",
  },
};

/** Returns the words for a route; undefined for a route that only another version gates. */
export function wordsOf(route: string): Words | undefined {
  return Object.hasOwn(words, route) ? words[route as AskedFor] : undefined;
}
