import { Command } from "commander";
import { addActivity } from "./commands/activity.ts";
import { addAlerts } from "./commands/alerts.ts";
import { addApi } from "./commands/api.ts";
import { addApprovals } from "./commands/approvals.ts";
import { addBackups } from "./commands/backups.ts";
import { addBuilds } from "./commands/builds.ts";
import { addCompletion } from "./commands/completion.ts";
import { addContexts } from "./commands/contexts.ts";
import { addClone, addCreate, addLink } from "./commands/create.ts";
import { addData } from "./commands/data.ts";
import { addCron } from "./commands/cron.ts";
import { addDatabase } from "./commands/database.ts";
import { addDeployments } from "./commands/deployments.ts";
import { addDiagnosis } from "./commands/diagnosis.ts";
import { addDisk } from "./commands/disk.ts";
import { addDomains } from "./commands/domains.ts";
import { addEnv } from "./commands/env.ts";
import { addFollow } from "./commands/follow.ts";
import { addGitCredential } from "./commands/git-credential.ts";
import { addLogin, addLogout } from "./commands/login.ts";
import { addLogs } from "./commands/logs.ts";
import { addMachines } from "./commands/machines.ts";
import { addMaintenance } from "./commands/maintenance.ts";
import { addMcp } from "./commands/mcp.ts";
import { addMetrics } from "./commands/metrics.ts";
import { addRequests } from "./commands/requests.ts";
import { addMe } from "./commands/me.ts";
import { addOpen } from "./commands/open.ts";
import { addOrgs } from "./commands/orgs.ts";
import { addOverview } from "./commands/overview.ts";
import { addPlan } from "./commands/plan.ts";
import { addMachine } from "./commands/machine.ts";
import { addPlatform } from "./commands/platform.ts";
import { addPreviews } from "./commands/previews.ts";
import { addProcesses } from "./commands/processes.ts";
import { addProjects } from "./commands/projects.ts";
import { addRegistries } from "./commands/registries.ts";
import { addRename } from "./commands/rename.ts";
import { addRuns } from "./commands/runs.ts";
import { addSelfDescription } from "./commands/self-description.ts";
import { addSshKeys } from "./commands/ssh-keys.ts";
import { addStatus } from "./commands/status.ts";
import { addTemplates } from "./commands/templates.ts";
import { addTimeline } from "./commands/timeline.ts";
import { addAccounts } from "./commands/accounts.ts";
import { addPeople } from "./commands/people.ts";
import { addProviders } from "./commands/providers.ts";
import { addTokens } from "./commands/tokens.ts";
import { addWebhooks } from "./commands/webhooks.ts";
import { versionText } from "../kit/own-version.ts";
import type { AddCommands } from "./command-tree.ts";
import type { CliContext } from "./context.ts";
import type { GlobalOptions } from "./environment.ts";

const headings: readonly (readonly [heading: string, ...AddCommands[]])[] = [
  ["Projects:", addCreate, addTemplates, addClone, addLink, addProjects, addRename, addOverview, addOpen],
  ["Deploying:", addDeployments, addPlan, addPreviews, addFollow, addBuilds, addProcesses, addRuns, addMaintenance],
  ["Watching:", addStatus, addDiagnosis, addLogs, addMetrics, addRequests, addTimeline, addActivity],
  ["Settings:", addEnv, addDomains, addCron, addDatabase, addData, addBackups, addDisk],
  [
    "Access:",
    addLogin,
    addLogout,
    addContexts,
    addMe,
    addSshKeys,
    addRegistries,
    addPeople,
    addAccounts,
    addProviders,
    addTokens,
    addApprovals,
    addWebhooks,
  ],
  [
    "The platform:",
    addAlerts,
    addPlatform,
    addMachine,
    addMachines,
    addOrgs,
    addApi,
    addMcp,
    addSelfDescription,
    addCompletion,
    addGitCredential,
  ],
];

const footnote = `
Every command takes --help. The project is --project, BERTH_PROJECT, or the one that the git remote "berth" names.
BERTH_URL and BERTH_TOKEN stand in for a login.
Exit codes: 0 done, 1 refused, 2 wrong usage, 3 not logged in, 4 not found, 5 conflict, 6 unavailable, 7 deployment failed, 8 needs an approval, 9 a check fails, 130 interrupted.`;

/** Builds the whole command tree. Nothing is read or sent before a command runs. */
export function buildProgram(ctx: CliContext): Command {
  const program = new Command("berth");
  program
    .description("Deploy applications by git push, and look after them.")
    .usage("<command> [options]")
    .version(versionText(), "-V, --version", "print the version")
    .option("-p, --project <slug>", "the project")
    .option("--json", "print the API's own JSON, and errors as JSON on stderr")
    .option("--context <name>", "the login to use; `berth contexts` lists them")
    .option("--no-color", "no colours")
    .option("--raw", "print logs byte for byte, with their control characters")
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .addHelpText("after", footnote)
    .hook("preAction", () => void Object.assign(ctx.options, program.opts<GlobalOptions>()));
  takeOverErrors(program, ctx);
  for (const [heading, ...parts] of headings) {
    program.commandsGroup(heading);
    for (const add of parts) add(program, ctx);
  }
  program.helpCommand("help [command]", "Show the help of a command");
  return program;
}

// Makes commander throw instead of printing and exiting, so that its errors are rendered like all others.
function takeOverErrors(program: Command, ctx: CliContext): void {
  const { stdout, stderr } = ctx.environment;
  program.exitOverride().configureOutput({
    writeOut: (text) => void stdout.write(text),
    writeErr: (text) => void stderr.write(text),
    outputError: () => {},
  });
}
