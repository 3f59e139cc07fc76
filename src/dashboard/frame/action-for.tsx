import { useState, type ComponentType } from "react";
import { limits } from "../../contract/limits.ts";
import { useCall } from "../data/api.ts";
import { compareNames, shortCommit } from "../data/format.ts";
import { textOf, NumberField, SelectField, TextField } from "../ui/field.tsx";
import { ImportDialog } from "../pages/cron/import-dialog.tsx";
import { JobDialog } from "../pages/cron/job-dialog.tsx";
import { RollbackDialog } from "../pages/deployments/rollback-dialog.tsx";
import { PasteDialog } from "../pages/env/paste-dialog.tsx";
import { SetDialog } from "../pages/env/set-dialog.tsx";
import { StopFollowing } from "../pages/follow/stop-following.tsx";
import { CreateOrg } from "../pages/orgs/orgs-page.tsx";
import { MoveDialog } from "../pages/platform/runtime.tsx";
import { CreateProject } from "../pages/projects/create-project.tsx";
import { AddRegistry } from "../pages/registries/registries.tsx";
import { StartRun } from "../pages/runs/start-run.tsx";
import { AddKey } from "../pages/ssh-keys/ssh-keys.tsx";
import { CreateToken } from "../pages/tokens/create-token.tsx";
import { AddWebhook } from "../pages/webhooks/add-webhook.tsx";
import { ActionDialog } from "../ui/action-dialog.tsx";
import { Dialog } from "../ui/dialog.tsx";
import type { Asked, OfProject, projectActions } from "./actions.ts";
import { BackUp, CreateDatabase, Drop, Promote, Restore, Verify } from "./database-actions.tsx";
import { plainAction, useDone } from "./plain-action.tsx";
import { Delete, Limits, Maintenance, Rename, Undelete } from "./project-changes.tsx";
import { DeleteJob, Detach, RemoveVariable } from "./removals.tsx";
import { Cancel, Deploy, Fetch, Follow } from "./source-actions.tsx";

/** Shows the dialog of an action that was chosen in the palette. It is the page's own dialog, if the page has one. */
export function ActionFor({ asked, onClose }: { readonly asked: Asked; readonly onClose: () => void }) {
  if ("slug" in asked) {
    const Chosen = ofProject[asked.kind];
    return <Chosen slug={asked.slug} onClose={onClose} />;
  }
  const Chosen = ofAll[asked.kind];
  return <Chosen onClose={onClose} />;
}

const Restart = plainAction({
  row: "processes.restart",
  title: (slug) => `Restart ${slug}`,
  submit: "Restart",
  input: (slug) => ({ params: { slug }, body: {} }),
  text: "New replicas are started first, so that no request is lost.",
  to: "processes",
});

const ofAll = {
  project: CreateProject,
  token: CreateToken,
  sshKey: AddKey,
  webhook: AddWebhook,
  registry: AddRegistry,
  org: CreateOrg,
};

const ofProject = {
  deploy: Deploy,
  rollback: Rollback,
  cancel: Cancel,
  restart: Restart,
  scale: Scale,
  run: StartRun,
  variable: ({ slug, onClose }: OfProject) => <SetDialog slug={slug} name={null} onClose={onClose} />,
  envFile: PasteFile,
  removeVariable: RemoveVariable,
  domain: Attach,
  detach: Detach,
  job: ({ slug, onClose }: OfProject) => <JobDialog slug={slug} job={null} onClose={onClose} />,
  runJob: RunJob,
  importJobs: ImportDialog,
  deleteJob: DeleteJob,
  database: CreateDatabase,
  backup: BackUp,
  verify: Verify,
  restore: Restore,
  promote: Promote,
  drop: Drop,
  follow: Follow,
  fetch: Fetch,
  stopFollowing: StopFollowing,
  maintenance: Maintenance,
  rename: Rename,
  limits: Limits,
  move: MoveDialog,
  delete: Delete,
  undelete: Undelete,
} satisfies Record<keyof typeof projectActions, ComponentType<OfProject>>;

function Scale(props: OfProject) {
  const { slug, onClose } = props;
  const done = useDone(props);
  const { data } = useCall("processes.list", { params: { slug } });
  return (
    <ActionDialog
      row="processes.set"
      title={`Scale ${slug}`}
      submit="Scale"
      why={data?.processes.length === 0 ? "Nothing runs yet." : undefined}
      input={(form) => ({
        params: { slug, type: textOf(form, "type") },
        body: { replicas: Number(textOf(form, "replicas")) },
      })}
      onDone={() => done("processes")}
      onClose={onClose}
    >
      <SelectField
        name="type"
        label="Process type"
        options={(data?.processes ?? []).map(({ type, replicas }) => [type, `${type} (now ${replicas})`])}
      />
      <NumberField name="replicas" label="Replicas" min={0} max={limits.replicas} defaultValue={2} />
    </ActionDialog>
  );
}

function Attach(props: OfProject) {
  const done = useDone(props);
  return (
    <ActionDialog
      row="domains.attach"
      title={`Attach a domain to ${props.slug}`}
      submit="Attach"
      input={(form) => ({
        params: { slug: props.slug },
        body: { hostname: textOf(form, "hostname").trim() },
      })}
      onDone={() => done("domains")}
      onClose={props.onClose}
    >
      <TextField name="hostname" label="Hostname" required mono autoComplete="off" placeholder="shop.example.com" />
    </ActionDialog>
  );
}

function RunJob(props: OfProject) {
  const { slug, onClose } = props;
  const done = useDone(props);
  const { data } = useCall("cron.list", { params: { slug } });
  return (
    <ActionDialog
      row="cron.run"
      title="Run a cron job now"
      submit="Run now"
      why={data?.jobs.length === 0 ? "The project has no cron job." : undefined}
      input={(form) => ({ params: { slug, name: textOf(form, "name") } })}
      onDone={() => done("cron")}
      onClose={onClose}
    >
      <SelectField
        name="name"
        label="Job"
        options={(data?.jobs ?? [])
          .toSorted((a, b) => compareNames(a.name, b.name))
          .map(({ name, path }) => [name, `${name}: ${path}`])}
      />
    </ActionDialog>
  );
}

function PasteFile({ slug, onClose }: OfProject) {
  const { data } = useCall("env.list", { params: { slug } });
  return <PasteDialog slug={slug} known={(data?.variables ?? []).map(({ key }) => key)} onClose={onClose} />;
}

/** Rolls back to a deployment that the user chooses here. The newest of the earlier ones is preselected. */
function Rollback({ slug, onClose }: OfProject) {
  const { data } = useCall("deployments.list", { params: { slug } });
  const [number, setNumber] = useState("");
  if (data === undefined) return null;
  const targets = data.deployments.filter(({ status }) => status === "retired");
  const target = targets.find((each) => `${each.number}` === number) ?? targets[0];
  if (target === undefined)
    return (
      <Dialog title="Roll back" onClose={onClose}>
        <p className="text-sm text-muted">{slug} has no earlier deployment to go back to.</p>
      </Dialog>
    );
  return (
    <RollbackDialog slug={slug} target={target} onClose={onClose}>
      <SelectField
        name="deployment"
        label="Back to"
        value={`${target.number}`}
        onChange={(event) => setNumber(event.target.value)}
        options={targets.map((each) => [`${each.number}`, `#${each.number} (${shortCommit(each.commit)})`])}
      />
    </RollbackDialog>
  );
}
