import { useState } from "react";
import { useCall } from "../data/api.ts";
import { RollbackDialog } from "../pages/deployments/rollback-dialog.tsx";
import { shortCommit } from "../data/format.ts";
import { Dialog } from "../ui/dialog.tsx";
import { SelectField } from "../ui/field.tsx";
import type { OfProject } from "./actions.ts";

/** Rolls back to a deployment that the user chooses here. The newest of the earlier ones is preselected. */
export function Rollback({ slug, onClose }: OfProject) {
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
