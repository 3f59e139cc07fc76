import { Plus } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall } from "../../data/api.ts";
import { useMe } from "../../data/me.ts";
import { textOf } from "../../data/text-of.ts";
import { Button } from "../../ui/button.tsx";
import { ConfirmDialog, FormDialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Page } from "../../ui/page.tsx";
import { fieldProblem, Problem } from "../../ui/problem.tsx";
import { State } from "../../ui/status.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago, Plain } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";
import { SecretOnce } from "../../ui/secret-once.tsx";

type Org = Answer<"orgs.list">["orgs"][number];
type Open = { readonly kind: "create" } | { readonly kind: "edit" | "disable"; readonly org: Org };

/** All organizations of the platform. */
export function OrgsPage() {
  const orgs = useCall("orgs.list", {});
  const enable = useAction("orgs.enable");
  const own = useMe().organization.slug;
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  return (
    <Page
      title="Organizations"
      actions={
        <Button look="primary" icon={<Plus size={15} />} onClick={() => setOpen({ kind: "create" })}>
          New organization
        </Button>
      }
    >
      {enable.error !== null && <Problem error={enable.error} />}
      <View of={orgs}>
        {(data) => (
          <Table
            caption="Organizations"
            rows={data.orgs}
            keyOf={({ id }) => id}
            columns={columnsFor({ own, onOpen: setOpen, onEnable: (slug) => enable.mutate({ params: { slug } }) })}
          />
        )}
      </View>
      {open?.kind === "create" && <CreateOrg onClose={close} />}
      {open?.kind === "edit" && <EditOrg org={open.org} onClose={close} />}
      {open?.kind === "disable" && <Disable org={open.org} onClose={close} />}
    </Page>
  );
}

interface ColumnsOf {
  readonly own: string;
  readonly onOpen: (open: Open) => void;
  readonly onEnable: (slug: string) => void;
}

function columnsFor({ own, onOpen, onEnable }: ColumnsOf): readonly Column<Org>[] {
  return [
    { head: "State", cell: ({ state }) => <State of={state} {...(state === "active" ? { word: "Active" } : {})} /> },
    {
      head: "Organization",
      grow: true,
      cell: ({ slug, name }) => (
        <span className="flex flex-col leading-4.5">
          <span className="font-medium">{slug}</span>
          <span className="truncate text-xs text-faint">
            <Plain>{name}</Plain>
          </span>
        </span>
      ),
    },
    { head: "Projects", end: true, cell: ({ projects, max_projects: most }) => `${projects} of ${most}` },
    {
      head: "Created",
      end: true,
      wide: true,
      cell: ({ created_at: at }) => (
        <span className="text-muted">
          <Ago at={at} />
        </span>
      ),
    },
    {
      head: "",
      end: true,
      cell: (org) => (
        <span className="inline-flex">
          <Button look="quiet" className="h-7" onClick={() => onOpen({ kind: "edit", org })}>
            Edit
          </Button>
          {org.state === "active" ? (
            <Button
              look="quiet"
              className="h-7"
              why={org.slug === own ? "This is your own organization." : undefined}
              onClick={() => onOpen({ kind: "disable", org })}
            >
              Suspend
            </Button>
          ) : (
            <Button look="quiet" className="h-7" onClick={() => onEnable(org.slug)}>
              Enable
            </Button>
          )}
        </span>
      ),
    },
  ];
}

function CreateOrg({ onClose }: { readonly onClose: () => void }) {
  const create = useAction("orgs.create");
  if (create.data !== undefined)
    return <SecretOnce title="Its owner's token" text={create.data.owner_token} onClose={onClose} />;
  const submit = (form: FormData) =>
    create.mutate({
      body: { slug: textOf(form, "slug"), name: textOf(form, "name"), max_projects: Number(textOf(form, "most")) },
    });
  return (
    <FormDialog
      title="New organization"
      submit="Create"
      busy={create.isPending}
      error={create.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Slug" error={fieldProblem(create.error, "slug")}>
        {(ids) => <Input {...ids} name="slug" required autoFocus mono maxLength={40} />}
      </Field>
      <Field label="Name" error={fieldProblem(create.error, "name")}>
        {(ids) => <Input {...ids} name="name" required maxLength={100} />}
      </Field>
      <Field label="Projects at most" error={fieldProblem(create.error, "max_projects")}>
        {(ids) => <Input {...ids} name="most" type="number" min={0} defaultValue={10} required className="max-w-32" />}
      </Field>
    </FormDialog>
  );
}

interface OfOrg {
  readonly org: Org;
  readonly onClose: () => void;
}

function EditOrg({ org, onClose }: OfOrg) {
  const update = useAction("orgs.update");
  const submit = (form: FormData) =>
    update.mutate(
      { params: { slug: org.slug }, body: { name: textOf(form, "name"), max_projects: Number(textOf(form, "most")) } },
      { onSuccess: onClose },
    );
  return (
    <FormDialog
      title={`Edit ${org.slug}`}
      submit="Save"
      busy={update.isPending}
      error={update.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field label="Name" error={fieldProblem(update.error, "name")}>
        {(ids) => <Input {...ids} name="name" required defaultValue={org.name} maxLength={100} />}
      </Field>
      <Field label="Projects at most" error={fieldProblem(update.error, "max_projects")}>
        {(ids) => (
          <Input
            {...ids}
            name="most"
            type="number"
            min={0}
            required
            defaultValue={org.max_projects}
            className="max-w-32"
          />
        )}
      </Field>
    </FormDialog>
  );
}

function Disable({ org, onClose }: OfOrg) {
  const disable = useAction("orgs.disable");
  return (
    <ConfirmDialog
      title="Suspend an organization"
      submit="Suspend"
      typed={org.slug}
      busy={disable.isPending}
      error={disable.error}
      onClose={onClose}
      onConfirm={() => disable.mutate({ params: { slug: org.slug } }, { onSuccess: onClose })}
    >
      <p className="text-sm text-muted">
        Its tokens, applications and cron jobs stop. Nothing is deleted; enabling it brings the same deployments back.
      </p>
    </ConfirmDialog>
  );
}
