import { Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useMe } from "../../data/api.ts";
import { plural } from "../../data/format.ts";
import { textOf, NumberField, TextField } from "../../ui/field.tsx";
import { ActionButton } from "../../ui/action-button.tsx";
import { ActionDialog, ConfirmAction } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { List, timeColumn, type Column } from "../../ui/table.tsx";
import { Page } from "../../ui/page.tsx";
import { State, Plain } from "../../ui/text.tsx";
import { Accounts } from "../people/accounts.tsx";

type Org = Answer<"orgs.list">["orgs"][number];

/** The page of all organizations of the platform. */
export function OrgsPage() {
  const orgs = useCall("orgs.list", {});
  return (
    <Page
      title="Organizations"
      actions={
        <DialogButton look="primary" icon={<Plus size={15} />} dialog={<CreateOrg />}>
          New organization
        </DialogButton>
      }
    >
      <List
        of={orgs}
        caption="Organizations"
        rows={(data) => data.orgs}
        keyOf={({ id }) => id}
        columns={columns}
        phone={(org) => <Item org={org} />}
      />
      {orgs.data !== undefined && <Accounts />}
    </Page>
  );
}

const columns: readonly Column<Org>[] = [
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
  { head: "", end: true, cell: (org) => <Actions org={org} /> },
];

interface OfOrg {
  readonly org: Org;
}

function Item({ org }: OfOrg) {
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
        <Actions org={org} />
      </div>
    </>
  );
}

function Actions({ org }: OfOrg) {
  const own = useMe().organization.slug;
  return (
    <span className="inline-flex">
      <DialogButton look="quiet" dialog={<EditOrg org={org} />}>
        Edit
      </DialogButton>
      <DialogButton look="quiet" dialog={<Rescue org={org} />}>
        Owner token
      </DialogButton>
      {org.state === "active" ? (
        <DialogButton
          look="quiet"
          why={org.slug === own ? "This is your own organization." : undefined}
          dialog={<Disable org={org} />}
        >
          Suspend
        </DialogButton>
      ) : (
        <ActionButton look="quiet" row="orgs.enable" label="Enable" input={{ params: { slug: org.slug } }} />
      )}
    </span>
  );
}

/** Creates an organization and shows its owner's token once. */
export function CreateOrg() {
  return (
    <ActionDialog
      row="orgs.create"
      title="New organization"
      submit="Create"
      input={(form) => ({ body: { slug: textOf(form, "slug"), ...detailsOf(form) } })}
      secret={{ title: "Its owner's token", of: (answer) => answer.owner_token }}
    >
      <TextField name="slug" label="Slug" required mono maxLength={40} />
      <Details name="" most={10} />
    </ActionDialog>
  );
}

function EditOrg({ org }: OfOrg) {
  return (
    <ActionDialog
      row="orgs.update"
      title={`Edit ${org.slug}`}
      submit="Save"
      input={(form) => ({ params: { slug: org.slug }, body: detailsOf(form) })}
    >
      <Details name={org.name} most={org.max_projects} />
    </ActionDialog>
  );
}

/** Creates an owner token for an organization that lost its own, and shows it once. */
function Rescue({ org }: OfOrg) {
  return (
    <ActionDialog
      row="orgs.rescue"
      title={`New owner token for ${org.slug}`}
      submit="Create"
      input={() => ({ params: { slug: org.slug } })}
      secret={{ title: "The owner's token", of: (answer) => answer.owner_token }}
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

function Disable({ org }: OfOrg) {
  return (
    <ConfirmAction
      row="orgs.disable"
      title="Suspend an organization"
      submit="Suspend"
      typed={org.slug}
      input={{ params: { slug: org.slug } }}
    >
      Its tokens, applications and cron jobs stop. Nothing is deleted; enabling it brings the same deployments back.
    </ConfirmAction>
  );
}
