import type { ComponentType, ReactNode } from "react";
import type { Answer } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { useCall, type Project } from "../data/api.ts";
import { exact, firstLine, shortCommit } from "../data/format.ts";
import { useHasDatabase } from "../data/use-has-database.ts";
import { Restore, verify } from "../pages/backups/backup-page.tsx";
import { backUp } from "../pages/backups/backups-page.tsx";
import { dropping, Promote } from "../pages/backups/restored.tsx";
import { cancelBuild } from "../pages/builds/cancel-build.ts";
import { ImportDialog } from "../pages/cron/import-dialog.tsx";
import { jobRemoval, runJob } from "../pages/cron/job-removal.ts";
import type { Job } from "../pages/cron/job.ts";
import { JobDialog } from "../pages/cron/job-dialog.tsx";
import { createDatabase } from "../pages/database/create-database.ts";
import { deployAgain } from "../pages/deployments/deploy-again.ts";
import { RollbackDialog } from "../pages/deployments/rollback-dialog.tsx";
import { LimitsDialog } from "../pages/disk/limits-dialog.tsx";
import { Attach, domainRemoval } from "../pages/domains/domains-page.tsx";
import { variableRemoval } from "../pages/env/env-page.tsx";
import { PasteDialog } from "../pages/env/paste-dialog.tsx";
import { SetDialog } from "../pages/env/set-dialog.tsx";
import { FollowDialog } from "../pages/follow/follow-dialog.tsx";
import { fetchNow } from "../pages/follow/followed.tsx";
import { StopFollowing } from "../pages/follow/stop-following.tsx";
import { CreateOrg } from "../pages/orgs/orgs-page.tsx";
import { MoveDialog } from "../pages/platform/runtime.tsx";
import { restartAll, Scale } from "../pages/processes/processes.tsx";
import { CreateProject } from "../pages/projects/create-project.tsx";
import { DeleteProject } from "../pages/projects/delete-project.tsx";
import { MaintenanceForm, maintenanceLead } from "../pages/projects/maintenance.tsx";
import { RenameDialog } from "../pages/projects/project-name.tsx";
import { undelete } from "../pages/projects/undelete.ts";
import { AddRegistry } from "../pages/registries/registries.tsx";
import { StartRun } from "../pages/runs/start-run.tsx";
import { AddKey } from "../pages/ssh-keys/ssh-keys.tsx";
import { CreateToken } from "../pages/tokens/create-token.tsx";
import { AddWebhook } from "../pages/webhooks/add-webhook.tsx";
import type { PlainAction } from "../ui/action-button.tsx";
import { ActionDialog } from "../ui/action-dialog.tsx";
import { Dialog } from "../ui/dialog.tsx";
import type { Asked, OfProject, projectActions } from "./actions.ts";
import { choosing } from "./choosing.tsx";

/** Shows the page's dialog of an action that was chosen in the palette. */
export function ActionFor({ asked }: { readonly asked: Asked }) {
  if ("slug" in asked) {
    const Chosen = ofProject[asked.kind];
    return <Chosen slug={asked.slug} />;
  }
  const Chosen = ofAll[asked.kind];
  return <Chosen />;
}

const ofAll = {
  project: CreateProject,
  token: CreateToken,
  sshKey: AddKey,
  webhook: AddWebhook,
  registry: AddRegistry,
  org: CreateOrg,
};

interface PlainProps<N extends RouteName> {
  readonly of: PlainAction<N>;
  readonly title?: string;
  readonly choice?: ReactNode;
}

/** Asks before a change for which pages have a button. */
function Plain<N extends RouteName>({ of: { row, label, input, text }, title = label, choice }: PlainProps<N>) {
  return (
    <ActionDialog row={row} title={title} submit={label} input={() => input}>
      {choice}
      {text !== undefined && <p className="text-sm text-muted">{text}</p>}
    </ActionDialog>
  );
}

const plain = <N extends RouteName>(of: (slug: string) => PlainAction<N>): ComponentType<OfProject> =>
  function PlainDialog({ slug }) {
    return <Plain of={of(slug)} title={`${slug}: ${of(slug).label}`} />;
  };

/** Waits for the project that a dialog needs. */
const withProject = (dialog: (project: Project) => ReactNode): ComponentType<OfProject> =>
  function WithProject({ slug }) {
    const { data } = useCall("projects.get", { params: { slug } });
    return data === undefined ? null : dialog(data);
  };

const useBackups = (slug: string) =>
  useCall("backups.list", { params: { slug } }).data?.backups.filter(({ status }) => status === "completed");

const ofBackups = {
  label: "Backup",
  none: "There is no completed backup.",
  useAll: useBackups,
  nameOf: ({ id }: Backup) => id,
  wordsOf: ({ created_at: at, content, origin }: Backup) => `${exact(at)}, ${content}, ${origin}`,
};

type Backup = Answer<"backups.list">["backups"][number];

const ofRestored = {
  label: "Database",
  none: "No database was restored.",
  // An error means that the project has no database.
  useAll: (slug: string) => {
    const { data, error } = useCall("backups.restored", { params: { slug } });
    return error === null ? data?.databases : [];
  },
  nameOf: ({ database }: Answer<"backups.restored">["databases"][number]) => database,
};

const ofJobs = {
  label: "Job",
  none: "The project has no cron job.",
  useAll: (slug: string) => useCall("cron.list", { params: { slug } }).data?.jobs,
  nameOf: ({ name }: Job) => name,
};

const ofProject = {
  deploy: plain(deployAgain),
  rollback: choosing({
    label: "Back to",
    none: "There is no earlier deployment to go back to.",
    useAll: (slug) =>
      useCall("deployments.list", { params: { slug } }).data?.deployments.filter(({ status }) => status === "retired"),
    nameOf: ({ number }) => `${number}`,
    wordsOf: ({ number, commit }) => `#${number} (${shortCommit(commit)})`,
    dialog: (slug, target, choice) => <RollbackDialog slug={slug} target={target} choice={choice} />,
  }),
  cancel: choosing({
    label: "Build",
    none: "Nothing was pushed yet.",
    useAll: (slug) => useCall("builds.list", { params: { slug } }).data?.builds.slice(0, 1),
    nameOf: ({ id }) => id,
    wordsOf: ({ number, message }) => `${number}: ${firstLine(message)}`,
    dialog: (_slug, build, choice) => (
      <Plain of={{ ...cancelBuild(build), label: "Cancel the deployment" }} choice={choice} />
    ),
  }),
  restart: plain(restartAll),
  scale: choosing({
    label: "Process type",
    none: "Nothing runs yet.",
    useAll: (slug) => useCall("processes.list", { params: { slug } }).data?.processes,
    nameOf: ({ type }) => type,
    dialog: (slug, process, choice) => <Scale slug={slug} process={process} choice={choice} />,
  }),
  run: StartRun,
  variable: ({ slug }: OfProject) => <SetDialog slug={slug} name={null} />,
  envFile: PasteDialog,
  removeVariable: choosing({
    label: "Key",
    none: "The project has no variables of its own.",
    useAll: (slug) => useCall("env.list", { params: { slug } }).data?.variables.filter(({ system }) => !system),
    nameOf: ({ key }) => key,
    dialog: (slug, variable, choice) => variableRemoval(slug).dialog(variable, choice),
  }),
  domain: Attach,
  detach: choosing({
    label: "Hostname",
    none: "The project has no hostname of its own.",
    useAll: (slug) => useCall("domains.list", { params: { slug } }).data?.domains,
    nameOf: ({ hostname }) => hostname,
    dialog: (slug, domain, choice) => domainRemoval(slug).dialog(domain, choice),
  }),
  job: ({ slug }: OfProject) => <JobDialog slug={slug} job={null} />,
  runJob: choosing({
    ...ofJobs,
    wordsOf: ({ name, path, command }) => `${name}: ${path ?? command}`,
    dialog: (slug, job, choice) => <Plain of={runJob(slug, job)} choice={choice} />,
  }),
  importJobs: ImportDialog,
  deleteJob: choosing({ ...ofJobs, dialog: (slug, job, choice) => jobRemoval(slug).dialog(job, choice) }),
  database: plain(createDatabase),
  backup: choosing({
    label: "Backup of",
    none: "",
    useAll: (slug) => {
      const has = useHasDatabase(slug);
      return has === true ? (["database", "files"] as const) : has === false ? (["files"] as const) : undefined;
    },
    nameOf: (content) => content,
    dialog: (slug, content, choice) => <Plain of={backUp(slug, content)} choice={choice} />,
  }),
  verify: choosing({ ...ofBackups, dialog: (_slug, backup, choice) => <Plain of={verify(backup)} choice={choice} /> }),
  restore: choosing({
    ...ofBackups,
    dialog: (slug, backup, choice) => <Restore slug={slug} backup={backup} choice={choice} />,
  }),
  promote: choosing({
    ...ofRestored,
    dialog: (slug, database, choice) => <Promote slug={slug} of={database} choice={choice} />,
  }),
  drop: choosing({ ...ofRestored, dialog: (slug, database, choice) => dropping(slug).dialog(database, choice) }),
  follow: withProject(({ slug, follows }) =>
    follows ? <FollowOther slug={slug} /> : <FollowDialog slug={slug} of={null} />,
  ),
  fetch: plain(fetchNow),
  stopFollowing: StopFollowing,
  maintenance: withProject((project) => (
    <Dialog title={`Maintenance of ${project.slug}`}>
      <p className="mb-4 text-sm text-muted">{maintenanceLead}</p>
      <MaintenanceForm project={project} />
    </Dialog>
  )),
  rename: withProject((project) => <RenameDialog project={project} />),
  limits: LimitsDialog,
  move: MoveDialog,
  delete: withProject((project) => <DeleteProject project={project} />),
  undelete: plain(undelete),
} satisfies Record<keyof typeof projectActions, ComponentType<OfProject>>;

function FollowOther({ slug }: OfProject) {
  const { data } = useCall("follow.get", { params: { slug } });
  return data === undefined ? null : <FollowDialog slug={slug} of={data} />;
}
