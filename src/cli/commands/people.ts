import { Option, type Command } from "commander";
import { roles, type Role } from "../../contract/access.ts";
import type { Answer, Client } from "../../contract/client.ts";
import { addCommand, commandGroup, actCommand, listCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { usageError } from "../failures.ts";
import { oneNamed } from "../one-named.ts";
import { oneLine, relativeTime } from "../render/text.ts";

type Member = Answer<"people.list">["members"][number];
type Invite = Answer<"people.invites">["invites"][number];

export const addPeople = commandGroup({
  name: "members",
  summary: "List, invite, change and remove people",
  commands: () => [addList, addInvite, addSet, addRemove, addLeave, addInvitations, addRevoke],
});

const roleOf = ({ role, platform_admin: admin }: Pick<Member, "role" | "platform_admin">) =>
  admin ? "platform admin" : role;

const projectsOf = ({ projects }: Pick<Member, "projects">) =>
  projects === null ? "all" : oneLine(projects.join(", ") || "none", 40);

const addList = listCommand({
  row: "people.list",
  usage: "list",
  summary: "List the people of the organization",
  isDefault: true,
  examples: ["berth members", "berth members list --json"],
  items: (answer) => answer.members,
  columns: {
    NAME: (member: Member) => oneLine(member.name, 40),
    EMAIL: (member) => oneLine(member.email ?? "", 40),
    ROLE: roleOf,
    PROJECTS: projectsOf,
    USED: (member) => relativeTime(member.last_used_at),
    ID: (member) => member.id,
  },
  empty: "Nobody has an account here yet: `berth members invite` makes a link for one person.",
});

interface InviteOptions {
  readonly role: Role;
  readonly email?: string;
  readonly platformAdmin?: boolean;
}

function addInvite(members: Command, ctx: CliContext): void {
  addCommand(members, {
    usage: "invite",
    summary:
      "Make a link with which one person joins within seven days, with --project limited to these projects; it is shown only once",
    examples: [
      "berth members invite",
      "berth members invite --project shop,blog --email ada@example.com",
      "berth members invite --role owner",
    ],
  })
    .addOption(new Option("--role <role>", "what the person may do").choices(roles).default("member"))
    .option("--email <address>", "the person's address: the link goes there, if the platform has a mail server")
    .option("--platform-admin", "the person also administers the platform")
    .action(async ({ role, email, platformAdmin }: InviteOptions) => {
      const { project } = ctx.options;
      const body = {
        role,
        email,
        platform_admin: platformAdmin,
        projects: project?.split(","),
      };
      const made = await (await ctx.client()).call("people.invite", { body });
      if (made.url === null)
        return ctx.output.result(made, () => `The invitation was mailed to ${oneLine(made.email ?? "")}.`);
      const why = made.mail_problem === null ? "" : `No mail could be sent: ${oneLine(made.mail_problem, 300)} `;
      ctx.output.note(
        () => `${why}Send this link to one person. It works once, within seven days, and is shown only now:`,
      );
      return ctx.output.result(made, () => made.url ?? "");
    });
}

function addSet(members: Command, ctx: CliContext): void {
  addCommand(members, {
    usage: "set <member>",
    summary: "Change what a person may do: --role, or the projects they reach by --project or --all-projects",
    examples: ["berth members set Ada --role owner", "berth members set Ada --project shop,blog"],
  })
    .addOption(new Option("--role <role>", "what the person may do").choices(roles))
    .option("--all-projects", "the person reaches all projects")
    .action(async (given: string, options: { role?: Role; allProjects?: boolean }) => {
      const projects = options.allProjects === true ? null : ctx.options.project?.split(",");
      if (options.role === undefined && projects === undefined)
        throw usageError("Nothing to change.", "Give --role, --project or --all-projects.");
      const client = await ctx.client();
      const { id } = await findMember(client, given);
      const changed = await client.call("people.update", { params: { id }, body: { role: options.role, projects } });
      ctx.output.result(
        changed,
        () => `${oneLine(changed.name)} is now: ${roleOf(changed)}, projects: ${projectsOf(changed)}.`,
      );
    });
}

const addRemove = actCommand({
  row: "people.remove",
  usage: "remove <member>",
  summary: "Remove a person, named by id, name or e-mail address",
  examples: ["berth members remove Ada"],
  find: findMember,
  warning: ({ thing }) =>
    `This removes ${oneLine(thing.name)}: their sessions, and the tokens and SSH keys that they created here, end at once.`,
  text: (_, _paint, { thing }) => `Removed ${oneLine(thing.name)}.`,
});

const addLeave = actCommand({
  row: "me.leave",
  usage: "leave",
  summary: "Leave the organization of this login",
  examples: ["berth members leave"],
  find: async (client) => {
    const { id, slug: name } = (await client.call("me.get")).organization;
    return { id, name };
  },
  warning: ({ thing: { name } }) =>
    `You leave ${name}: your sessions, and the tokens and SSH keys that you created there, end at once.`,
  text: (_, _paint, { thing: { name } }) => `You left ${name}. This login has ended: \`berth logout\` forgets it.`,
});

const addInvitations = listCommand({
  row: "people.invites",
  usage: "invitations",
  summary: "List the open invitations",
  examples: ["berth members invitations"],
  items: (answer) => answer.invites,
  columns: {
    ID: (invite: Invite) => invite.id,
    EMAIL: (invite) => oneLine(invite.email ?? "", 40),
    ROLE: roleOf,
    PROJECTS: projectsOf,
    BY: (invite) => oneLine(invite.invited_by, 40),
    EXPIRES: (invite) => relativeTime(invite.expires_at),
  },
  empty: "There is no open invitation.",
});

const addRevoke = actCommand({
  row: "people.revoke",
  usage: "revoke <invitation>",
  summary: "Revoke an open invitation, named by id or e-mail address",
  examples: ["berth members revoke ada@example.com"],
  find: async (client, given) => {
    const { invites } = await client.call("people.invites");
    const names = ({ id, email }: Invite) => [id, email ?? id];
    return oneNamed(invites, given, { noun: "invitation", names, list: "berth members invitations" });
  },
  warning: ({ thing: { id, email } }) =>
    `This revokes the invitation ${oneLine(email ?? id)}; its link no longer works.`,
  typed: ({ thing: { id, email } }) => oneLine(email ?? id),
  text: () => "Revoked the invitation.",
});

async function findMember(client: Client, given: string) {
  const { members } = await client.call("people.list");
  const names = ({ id, name, email }: Member) => [id, name, email ?? id];
  return oneNamed(members, given, { noun: "member", names, list: "berth members" });
}
