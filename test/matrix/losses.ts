/**
 * What becomes of the things that a write replaces, removes or silences, decided for each write of the contract:
 * `asks`: a human approves every such request of a token in approval mode.
 * `asks_if_it_loses`: the handler notes which requests lose nothing; all others ask.
 * `brings_back`: allowed, because the sentence says what brings the earlier state back.
 * `adds`: nothing that existed changes.
 */
export type Loss =
  | "asks"
  | { readonly asks_if_it_loses: string }
  | { readonly brings_back: string }
  | { readonly adds: string };

const deploys = { brings_back: "a rollback; what a release command changes is outside approvals (docs/approvals.md)" };
const ends = { adds: "ends unfinished work; its row and output stay" };
const operates = { brings_back: "the same request with the earlier number, which the activity lists" };

/** By row name. A test compares it with the contract. */
export const losses: Readonly<Record<string, Loss>> = {
  "projects.create": { adds: "a project" },
  "projects.settings": { brings_back: "the same request with the values that the activity keeps as `before`" },
  "projects.rename": { brings_back: "another rename; the earlier name leads to the project for 30 days" },
  "projects.maintenance": { brings_back: "the same request with `on` reversed; requests are answered, data stays" },
  "projects.delete": "asks",
  "projects.undelete": { adds: "a project that had stopped serving" },
  "previews.create": deploys,
  "previews.delete": "asks",
  "deployments.create": deploys,
  "deployments.rollback": { brings_back: "a rollback to the deployment that was live" },
  "deployments.scale": operates,
  "processes.set": operates,
  "processes.restart": { adds: "a deployment of the same image" },
  "registries.set": { asks_if_it_loses: "the present user and password" },
  "registries.delete": "asks",
  "runs.create": "asks",
  "runs.cancel": ends,
  "builds.cancel": ends,
  "builds.upload": deploys,
  "builds.change": deploys,
  "follow.set": "asks",
  "follow.delete": "asks",
  "follow.fetch": deploys,
  "env.set": { brings_back: "`env restore`: deployments keep the earlier value" },
  "env.import": { brings_back: "`env restore`: deployments keep the earlier values" },
  "env.delete": "asks",
  "domains.attach": { adds: "a hostname" },
  "domains.detach": "asks",
  "cron.set": { asks_if_it_loses: "nothing of the job (`cron restore`), but a new command is a one-off command" },
  "cron.import": { asks_if_it_loses: "as cron.set" },
  "cron.restore": { brings_back: "the same request again: it exchanges the two states" },
  "cron.run": { adds: "a run" },
  "cron.delete": "asks",
  "database.create": { adds: "a database" },
  "database.connect": "asks",
  "database.dump": { adds: "nothing: it reads" },
  "database.import": "asks",
  "data.insert": { adds: "a row" },
  "data.delete": "asks",
  "branches.create": { asks_if_it_loses: "nothing, but an unmasked copy shows the live data for longer" },
  "branches.delete": "asks",
  "backups.create": { adds: "a backup; refused where an earlier one would be deleted for it" },
  "backups.restore": "asks",
  "backups.set_archive": "asks",
  "backups.run_drill": { adds: "the result of a drill" },
  "backups.verify": { adds: "the result of a verification" },
  "backups.promote": "asks",
  "backups.drop": "asks",
  "disk.remove": "asks",
  "disk.limits": "asks",
  "tokens.create": "asks",
  "tokens.delete": "asks",
  "me.end_sessions": { adds: "nothing; the person signs in again" },
  "me.update": { brings_back: "the same request with the name that the activity keeps as `before`" },
  "me.rename_passkey": { brings_back: "the same request with the earlier name" },
  "me.delete_passkey": "asks",
  "me.unlink_identity": "asks",
  "providers.set": "asks",
  "providers.delete": "asks",
  "people.update": "asks",
  "people.remove": "asks",
  "people.invite": "asks",
  "people.revoke": "asks",
  "ssh-keys.create": { adds: "a key with the rights of the token" },
  "ssh-keys.delete": "asks",
  "webhooks.create": { adds: "a webhook" },
  "webhooks.update": { asks_if_it_loses: "events, the address, the format, or all deliveries" },
  "webhooks.delete": "asks",
  "webhooks.test": { adds: "a delivery" },
  "orgs.create": "asks",
  "orgs.update": operates,
  "orgs.scale": operates,
  "orgs.disable": "asks",
  "orgs.rescue": "asks",
  "orgs.enable": { adds: "an organization that had stopped" },
  "approvals.withdraw": { adds: "nothing: only the token's own request ends" },
  "platform.move": { brings_back: "a move to the earlier runtime" },
  "platform.back_up": { adds: "a backup; in approval mode none that would delete an earlier one" },
  "platform.upgrade": "asks",
  "platform.finalize": "asks",
  "platform.join": "asks",
  "platform.drain": { brings_back: "the same request with the opposite value; replicas move before they stop" },
  "platform.dismiss": "asks",
};
