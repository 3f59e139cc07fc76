import { Option, type Command } from "commander";
import { type Answer, type Client } from "../../contract/client.ts";
import { addCommand, commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { limits } from "../../contract/limits.ts";
import { agentsMay, previewContents, type PreviewContent } from "../../contract/projects.ts";
import { ifGiven, wholeNumber } from "../input.ts";
import { awaitServing } from "../../client/outcomes.ts";
import { usageError } from "../failures.ts";
import { paintStatus, facts, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";

export const addProjects = commandGroup({
  name: "projects",
  summary: "List, show and change projects",
  commands: () => [addList, addShow, addSettings, addDelete, addUndelete, addPurge],
});

type Project = Answer<"projects.get">;

const addList = listCommand({
  row: "projects.list",
  usage: "list",
  summary: "List the projects",
  isDefault: true,
  examples: ["berth projects", "berth projects list --deleted --json"],
  input: ({ deleted }) => ({ query: { deleted: deleted ?? false } }),
  items: (answer) => answer.projects,
  columns: {
    PROJECT: (project) => project.slug,
    STATE: (project, paint) => paintStatus(paint, project.health?.state ?? project.state),
    DEPLOYMENT: ({ active_deployment: active }) => (active === null ? "none" : `#${active.number}`),
    REPLICAS: (project) => String(project.replicas),
    URL: (project) => project.url,
    CREATED: (project) => relativeTime(project.created_at),
  },
  empty: "There are no projects yet: `berth create <slug>` makes one.",
  options: (command) => command.option("--deleted", "show deleted projects too"),
});

const addShow = rowCommand({
  row: "projects.get",
  usage: "show [slug]",
  summary: "Show one project",
  examples: ["berth projects show", "berth projects show demo --json"],
  text: describe,
});

function describe(project: Project, paint: Paint): string {
  const active = project.active_deployment;
  return facts(paint, [
    ["project", paint.bold(project.slug)],
    ["name", oneLine(project.name)],
    ["health", healthText(paint, project)],
    ["url", project.url],
    ["earlier", project.earlier_names.map(({ url, until }) => `${url} until ${until.slice(0, 10)}`).join(", ") || null],
    [
      "deployment",
      active === null
        ? "none"
        : `#${active.number}, ${active.commit?.slice(0, 8) ?? "no commit"}, ${relativeTime(active.activated_at)}`,
    ],
    ["ahead", project.ahead?.text ?? null],
    ["replicas", String(project.replicas)],
    ["maintenance", maintenanceText(project)],
    ["port", String(project.port ?? "standard")],
    ["health path", project.health_path ?? "none"],
    ["start", project.start_seconds === null ? null : `at most ${project.start_seconds} s`],
    [
      "sleeps after",
      project.sleep_after_minutes === null ? null : `${project.sleep_after_minutes} min without a request`,
    ],
    ["root folder", project.root],
    ["watched", project.watch?.join(", ") ?? null],
    ...(project.storage ? [] : [["storage", "off: replicas run on any machine"] as const]),
    ["previews", project.previews?.join(", ") ?? null],
    ["agents deploy to", project.agents === "preview" ? "previews only" : null],
    ["previews' data", project.previews === null ? null : project.preview_data],
    ["inherited", project.preview_variables?.join(", ") ?? null],
    ["preview of", previewText(project)],
    ["git over SSH", project.git.ssh],
    ["git over HTTP", project.git.https],
    ["created", relativeTime(project.created_at)],
    ["deleted", project.deleted_at === null ? null : relativeTime(project.deleted_at)],
  ]);
}

function previewText({ preview }: Project): string | null {
  return (
    preview &&
    `${preview.of}, branch ${oneLine(preview.branch)}, ${preview.expires_at === null ? "pinned" : `ends ${relativeTime(preview.expires_at)}`}`
  );
}

export function healthText(paint: Paint, { state, health }: Project): string {
  return health === null
    ? paintStatus(paint, state)
    : `${paintStatus(paint, health.state)}: ${oneLine(health.sentence, 300)}`;
}

/** Returns since when visitors get the maintenance page, and its text; null if they get the application. */
export function maintenanceText({ maintenance }: Pick<Project, "maintenance">): string | null {
  if (maintenance === null) return null;
  const { since, message } = maintenance;
  return `on, ${relativeTime(since)}${message === null ? "" : `: ${oneLine(message)}`}`;
}

function addSettings(projects: Command, ctx: CliContext): void {
  const examples = [
    "berth projects settings demo --port 3000 --health-path /healthz",
    "berth projects settings --health-path none",
    "berth projects settings --root apps/web --watch 'apps/web/**' 'shared/**'",
    "berth projects settings --storage off",
    "berth projects settings --sleep-after 30    # minutes without a request; the next one starts it again",
    "berth projects settings --previews 'feature/*' --preview-variables LOG_LEVEL",
  ];
  const settings = addCommand(projects, {
    usage: "settings [slug]",
    summary:
      "Change port, health path, root folder, watched paths, storage and previews from the next deploy on, and when it sleeps",
    examples,
  });
  addPreviewOptions(settings)
    .option("--port <port>", "the port the application listens on, or `none` for the standard one")
    .option("--health-path <path>", "the path of the health check, or `none`")
    .option("--start-seconds <seconds>", "how long a start may take until it is healthy, or `none`")
    .option(
      "--sleep-after <minutes>",
      "stop it after this long without a request, or `none`; workers and cron jobs keep it awake",
    )
    .option("--root <folder>", "the folder of the repository to build, or `none` for the one in berth.json")
    .option(
      "--watch <patterns...>",
      "paths whose changes deploy, or `none`; a push that changes none of them deploys nothing",
    )
    .addOption(
      new Option(
        "--storage <state>",
        "`off`: no storage folder, so that replicas may run on any machine of a swarm",
      ).choices(["on", "off"]),
    )
    .action(async (given: string | undefined, options: SettingsOptions) => {
      if (Object.keys(options).length === 0)
        throw usageError(
          "Nothing to change: give --port, --health-path, --start-seconds, --sleep-after, --root, --watch, --storage or --previews.",
          "`berth projects show` shows the settings.",
        );
      const slug = await currentProject(ctx, given);
      const body = settingsOf(options);
      const client = await ctx.client();
      const project = await client.call("projects.settings", { params: { slug }, body });
      ctx.output.result(project, (paint) => describe(project, paint));
      if (Object.keys(options).some((name) => name !== "sleepAfter"))
        ctx.output.note(() => "This applies from the next deploy.");
    });
}

function addPreviewOptions(settings: Command): Command {
  return settings
    .option("--previews <branches...>", "the branches that get previews, such as `'*'` or `'feature/*'`, or `none`")
    .option("--preview-variables <names...>", "the variables that previews inherit, or `none`")
    .addOption(
      new Option("--agents <target>", "what tokens in approval mode deploy to: the project, or previews only").choices(
        agentsMay,
      ),
    )
    .addOption(
      new Option(
        "--preview-data <data>",
        "the data of new previews: none, a copy of the project's, or a masked one",
      ).choices(previewContents),
    );
}

interface SettingsOptions {
  readonly port?: string;
  readonly healthPath?: string;
  readonly startSeconds?: string;
  readonly sleepAfter?: string;
  readonly root?: string;
  readonly watch?: string[];
  readonly storage?: "on" | "off";
  readonly previews?: string[];
  readonly previewVariables?: string[];
  readonly previewData?: PreviewContent;
  readonly agents?: "deploy" | "preview";
}

function settingsOf(options: SettingsOptions) {
  const { port, healthPath, startSeconds, sleepAfter, root, watch, storage, previews, previewVariables } = options;
  const text = (given: string) => given;
  const words = (given: string[] | undefined) => given && (given.join() === "none" ? null : given);
  return {
    port: unlessNone(port, (given) => wholeNumber(given, "--port", { least: 1, most: 65_535 })),
    health_path: unlessNone(healthPath, text),
    start_seconds: unlessNone(startSeconds, (given) =>
      wholeNumber(given, "--start-seconds", { least: 1, most: limits.start_seconds }),
    ),
    sleep_after_minutes: unlessNone(sleepAfter, (given) =>
      wholeNumber(given, "--sleep-after", { least: 1, most: limits.sleep_minutes }),
    ),
    root: unlessNone(root, text),
    watch: words(watch),
    storage: storage && storage === "on",
    previews: words(previews),
    preview_variables: words(previewVariables),
    preview_data: options.previewData,
    agents: options.agents,
  };
}

/** The word `none` clears a setting; an option that is not given leaves it as it is. */
function unlessNone<T>(given: string | undefined, read: (text: string) => T): T | null | undefined {
  return given === "none" ? null : ifGiven(given, read);
}

const addDelete = actCommand({
  row: "projects.delete",
  usage: "delete <slug>",
  summary: "Stop serving a project; it can be undeleted",
  examples: ["berth projects delete demo", "berth projects delete demo --yes"],
  warning: ({ words: { slug = "" }, baseUrl }) =>
    `This stops ${slug} on ${baseUrl}; its code, database and backups are kept.`,
  text: (_, _paint, { words: { slug } }) => `${slug} is deleted. \`berth projects undelete ${slug}\` brings it back.`,
});

const addPurge = actCommand({
  row: "projects.delete",
  usage: "purge <slug>",
  summary: "Delete a deleted project for good; a verified final backup of its database is kept",
  examples: ["berth projects purge demo", "berth projects purge demo --yes"],
  input: () => ({ query: { purge: true } }),
  warning: ({ words: { slug = "" }, baseUrl }) =>
    `This deletes the code, files, logs, history and database of ${slug} on ${baseUrl} for good. A final backup is kept.`,
  progress: ({ words }) => `Backing ${words.slug} up and deleting it`,
  text: ({ final_backup_id: id }, _paint, { words: { slug } }) => {
    const backup = id === null ? "It had no database." : `\`berth backups show ${id}\` shows its final backup.`;
    return `${slug} is gone for good, and its slug is free. ${backup}`;
  },
});

function addUndelete(projects: Command, ctx: CliContext): void {
  addCommand(projects, {
    usage: "undelete <slug>",
    summary: "Bring a deleted project back",
    examples: ["berth projects undelete demo", "berth projects undelete demo --no-wait"],
  })
    .option("--no-wait", "don't wait until it serves")
    .action(async (slug: string, options: { wait: boolean }) => {
      const client: Client = await ctx.client();
      const project = await client.call("projects.undelete", { params: { slug } });
      ctx.goesOn = `${slug} is no longer deleted, and starts.`;
      const serves =
        options.wait &&
        (await withProgress(ctx, `Starting ${slug}`, (say) => awaitServing({ client, signal: ctx.signal, say }, slug)));
      ctx.output.result(project, () =>
        serves
          ? `${slug} serves again: ${project.url}`
          : `${slug} is no longer deleted${project.active_deployment === null ? "; nothing was deployed in it" : `, and starts: ${project.url}`}`,
      );
    });
}
