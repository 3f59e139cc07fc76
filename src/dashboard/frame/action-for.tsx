import { useNavigate } from "@tanstack/react-router";
import { limits } from "../../contract/limits.ts";
import { useCall } from "../data/api.ts";
import { textOf } from "../data/text-of.ts";
import { JobDialog } from "../pages/cron/job-dialog.tsx";
import { PasteDialog } from "../pages/env/paste-dialog.tsx";
import { SetDialog } from "../pages/env/set-dialog.tsx";
import { CreateOrg } from "../pages/orgs/orgs-page.tsx";
import { CreateProject } from "../pages/projects/create-project.tsx";
import { DeleteProject } from "../pages/projects/delete-project.tsx";
import { AddRegistry } from "../pages/registries/registries.tsx";
import { StartRun } from "../pages/runs/start-run.tsx";
import { AddKey } from "../pages/ssh-keys/ssh-keys.tsx";
import { CreateToken } from "../pages/tokens/create-token.tsx";
import { AddWebhook } from "../pages/webhooks/add-webhook.tsx";
import { ActionDialog } from "../ui/action-dialog.tsx";
import { NumberField, SelectField, TextField } from "../ui/field.tsx";
import type { Asked, OfProject } from "./actions.ts";
import { Rollback } from "./rollback.tsx";

/** The dialog of an action that was chosen in the palette: the page's own one where it has one. */
export function ActionFor({ asked, onClose }: { readonly asked: Asked; readonly onClose: () => void }) {
  if ("slug" in asked) {
    const Chosen = ofProject[asked.kind];
    return <Chosen slug={asked.slug} onClose={onClose} />;
  }
  const Chosen = ofAll[asked.kind];
  return <Chosen onClose={onClose} />;
}

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
  restart: Restart,
  scale: Scale,
  run: StartRun,
  variable: ({ slug, onClose }: OfProject) => <SetDialog slug={slug} name={null} onClose={onClose} />,
  envFile: PasteFile,
  domain: Attach,
  job: ({ slug, onClose }: OfProject) => <JobDialog slug={slug} job={null} onClose={onClose} />,
  runJob: RunJob,
  backup: BackUp,
  delete: Delete,
};

/** Closes the dialog, and shows what came of it where it is shown. */
function useDone({ slug, onClose }: OfProject) {
  const navigate = useNavigate();
  return (to: "deployments" | "processes" | "domains" | "cron" | "backups") => {
    onClose();
    void navigate({ to: `/projects/$slug/${to}`, params: { slug } });
  };
}

function Deploy(props: OfProject) {
  const done = useDone(props);
  return (
    <ActionDialog
      row="deployments.create"
      title={`Deploy ${props.slug} again`}
      submit="Deploy again"
      input={() => ({ params: { slug: props.slug }, body: {} })}
      onDone={() => done("deployments")}
      onClose={props.onClose}
    >
      <p className="text-sm text-muted">
        The newest commit is built and started beside the present deployment, checked for health, then switched to.
      </p>
    </ActionDialog>
  );
}

function Restart(props: OfProject) {
  const done = useDone(props);
  return (
    <ActionDialog
      row="processes.restart"
      title={`Restart ${props.slug}`}
      submit="Restart"
      input={() => ({ params: { slug: props.slug }, body: {} })}
      onDone={() => done("processes")}
      onClose={props.onClose}
    >
      <p className="text-sm text-muted">New replicas are started first, so that no request is lost.</p>
    </ActionDialog>
  );
}

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
        options={(data?.jobs ?? []).map(({ name, path }) => [name, `${name}: ${path}`])}
      />
    </ActionDialog>
  );
}

function BackUp(props: OfProject) {
  const done = useDone(props);
  return (
    <ActionDialog
      row="backups.create"
      title={`Back up the database of ${props.slug}`}
      submit="Back up now"
      input={() => ({ params: { slug: props.slug } })}
      onDone={() => done("backups")}
      onClose={props.onClose}
    >
      <p className="text-sm text-muted">The application goes on meanwhile.</p>
    </ActionDialog>
  );
}

function PasteFile({ slug, onClose }: OfProject) {
  const { data } = useCall("env.list", { params: { slug } });
  return <PasteDialog slug={slug} known={(data?.variables ?? []).map(({ key }) => key)} onClose={onClose} />;
}

function Delete({ slug, onClose }: OfProject) {
  const { data } = useCall("projects.get", { params: { slug } });
  return data === undefined ? null : <DeleteProject project={data} onClose={onClose} />;
}
