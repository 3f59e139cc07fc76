import { Plus } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useAction, useCall, useMe } from "../../data/api.ts";
import { plural } from "../../data/format.ts";
import { textOf, NumberField, TextField } from "../../ui/field.tsx";
import { ActionDialog, ConfirmAction } from "../../ui/action-dialog.tsx";
import { Button, DialogButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Page, Problem } from "../../ui/page.tsx";
import { State, Plain } from "../../ui/text.tsx";
import { Accounts } from "../people/accounts.tsx";

type Org = Answer<"orgs.list">["orgs"][number];
type Open = { readonly kind: "edit" | "rescue" | "disable"; readonly org: Org };

/** The page of all organizations of the platform. */
export function OrgsPage() {
  const orgs = useCall("orgs.list", {});
  const enable = useAction("orgs.enable");
  const own = useMe().organization.slug;
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const doing = { own, onOpen: setOpen, onEnable: (slug: string) => enable.mutate({ params: { slug } }) };
  return (
    <Page
      title="Organizations"
      actions={
        <DialogButton look="primary" icon={<Plus size={15} />} dialog={(shut) => <CreateOrg onClose={shut} />}>
          New organization
        </DialogButton>
      }
    >
      {enable.error !== null && <Problem error={enable.error} />}
      <List
        of={orgs}
        caption="Organizations"
        rows={(data) => data.orgs}
        keyOf={({ id }) => id}
        columns={columnsFor(doing)}
        phone={(org) => <Item org={org} {...doing} />}
      />
      {orgs.data !== undefined && <Accounts />}
      {open?.kind === "edit" && <EditOrg org={open.org} onClose={close} />}
      {open?.kind === "rescue" && <Rescue org={open.org} onClose={close} />}
      {open?.kind === "disable" && <Disable org={open.org} onClose={close} />}
    </Page>
  );
}

interface ColumnsOf {
  readonly own: string;
  readonly onOpen: (open: Open) => void;
  readonly onEnable: (slug: string) => void;
}

function columnsFor(doing: ColumnsOf): readonly Column<Org>[] {
  return [
    { head: "State", cell: ({ state }) => <State of={state} {...(state === "active" ? { word: "Active" } : {})} /> },
    {
      head: "Organization",
      grow: true,
      cell: ({ slug, name }) => (
        <span className="flex flex-col leading-4.5">
          <span className="font-medium">{slug}</span>
          <Plain className="truncate text-xs text-faint">{name}</Plain>
        </span>
      ),
    },
    { head: "Projects", end: true, wide: true, cell: ({ projects, max_projects: most }) => `${projects} of ${most}` },
    timeColumn("Created", (row) => row.created_at),
    {
      head: "",
      end: true,
      cell: (org) => <Actions org={org} {...doing} />,
    },
  ];
}

function Item({ org, ...doing }: ColumnsOf & { readonly org: Org }) {
  const { slug, name, state, projects, max_projects: most } = org;
  return (
    <>
      <p className="flex items-center justify-between gap-3">
        <span className="min-w-0 truncate font-medium">{slug}</span>
        <State of={state} {...(state === "active" ? { word: "Active" } : {})} />
      </p>
      <p className="truncate text-muted">
        <Plain>{name}</Plain> · {projects} of {plural(most, "project")}
      </p>
      <div className="-mx-3 -mb-1.5">
        <Actions org={org} {...doing} />
      </div>
    </>
  );
}

function Actions({ org, own, onOpen, onEnable }: ColumnsOf & { readonly org: Org }) {
  return (
    <span className="inline-flex">
      <Button look="quiet" className="h-7" onClick={() => onOpen({ kind: "edit", org })}>
        Edit
      </Button>
      <Button look="quiet" className="h-7" onClick={() => onOpen({ kind: "rescue", org })}>
        Owner token
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
  );
}

interface DialogOf {
  readonly onClose: () => void;
}

/** Creates an organization and shows its owner's token once. */
export function CreateOrg({ onClose }: DialogOf) {
  return (
    <ActionDialog
      row="orgs.create"
      title="New organization"
      submit="Create"
      input={(form) => ({ body: { slug: textOf(form, "slug"), ...detailsOf(form) } })}
      secret={{ title: "Its owner's token", of: (answer) => answer.owner_token }}
      onClose={onClose}
    >
      <TextField name="slug" label="Slug" required mono maxLength={40} />
      <Details name="" most={10} />
    </ActionDialog>
  );
}

interface OfOrg extends DialogOf {
  readonly org: Org;
}

function EditOrg({ org, onClose }: OfOrg) {
  return (
    <ActionDialog
      row="orgs.update"
      title={`Edit ${org.slug}`}
      submit="Save"
      input={(form) => ({ params: { slug: org.slug }, body: detailsOf(form) })}
      onClose={onClose}
    >
      <Details name={org.name} most={org.max_projects} />
    </ActionDialog>
  );
}

/** Creates an owner token for an organization that lost its own, and shows it once. */
function Rescue({ org, onClose }: OfOrg) {
  return (
    <ActionDialog
      row="orgs.rescue"
      title={`New owner token for ${org.slug}`}
      submit="Create"
      input={() => ({ params: { slug: org.slug } })}
      secret={{ title: "The owner's token", of: (answer) => answer.owner_token }}
      onClose={onClose}
    >
      For an organization whose owner tokens are lost. Its holder may do everything there.
    </ActionDialog>
  );
}

function Details({ name, most }: { readonly name: string; readonly most: number }) {
  return (
    <>
      <TextField name="name" label="Name" required defaultValue={name} maxLength={100} />
      <NumberField name="max_projects" label="Projects at most" min={0} defaultValue={most} />
    </>
  );
}

function detailsOf(form: FormData) {
  return { name: textOf(form, "name"), max_projects: Number(textOf(form, "max_projects")) };
}

function Disable({ org, onClose }: OfOrg) {
  return (
    <ConfirmAction
      row="orgs.disable"
      title="Suspend an organization"
      submit="Suspend"
      typed={org.slug}
      input={{ params: { slug: org.slug } }}
      onClose={onClose}
    >
      Its tokens, applications and cron jobs stop. Nothing is deleted; enabling it brings the same deployments back.
    </ConfirmAction>
  );
}
