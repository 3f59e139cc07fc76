import type { ComponentType } from "react";
import { useCall, type Project } from "../data/api.ts";
import { textOf } from "../ui/field.tsx";
import { maintenanceButton, maintenanceLead, MaintenanceText } from "../pages/projects/maintenance.tsx";
import { LimitsDialog } from "../pages/disk/limits-dialog.tsx";
import { DeleteProject } from "../pages/projects/delete-project.tsx";
import { RenameDialog } from "../pages/projects/project-name.tsx";
import { ActionDialog } from "../ui/action-dialog.tsx";
import type { OfProject } from "./actions.ts";
import { plainAction } from "./plain-action.tsx";

type OfLoaded = ComponentType<{ readonly project: Project; readonly onClose: () => void }>;

/** Wraps a dialog that needs the loaded project. */
const withProject = (Chosen: OfLoaded) =>
  function WithProject({ slug, onClose }: OfProject) {
    const { data } = useCall("projects.get", { params: { slug } });
    return data === undefined ? null : <Chosen project={data} onClose={onClose} />;
  };

export const Rename = withProject(RenameDialog);
export const Delete = withProject(DeleteProject);

export const Undelete = plainAction({
  row: "projects.undelete",
  title: (slug) => `Undelete ${slug}`,
  submit: "Undelete",
  input: (slug) => ({ params: { slug } }),
  text: "Brings the project back with the deployment it had.",
  to: "deployments",
});

export const Maintenance = withProject(function MaintenanceDialog({ project: { slug, maintenance }, onClose }) {
  const isOn = maintenance !== null;
  const input = (form: FormData) => {
    const message = textOf(form, "message").trim() || null;
    return { params: { slug }, body: isOn ? ({ on: false } as const) : ({ on: true, message } as const) };
  };
  return (
    <ActionDialog
      row="projects.maintenance"
      title={`Maintenance of ${slug}`}
      submit={maintenanceButton(isOn)}
      input={input}
      onClose={onClose}
    >
      <p className="text-sm text-muted">
        {isOn ? "Visitors see “Down for maintenance” instead of the application." : maintenanceLead}
      </p>
      {!isOn && <MaintenanceText />}
    </ActionDialog>
  );
});

export function Limits({ slug, onClose }: OfProject) {
  const { data } = useCall("disk.get", { params: { slug } });
  return data === undefined ? null : <LimitsDialog slug={slug} disk={data} onClose={onClose} />;
}
