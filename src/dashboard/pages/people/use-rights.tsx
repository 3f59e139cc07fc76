import { useState } from "react";
import { roles, type Role } from "../../../contract/access.ts";
import { useCall } from "../../data/api.ts";
import { Choice } from "../../ui/choice.tsx";
import { Checkbox } from "../../ui/field.tsx";
import { View } from "../../ui/page.tsx";
import { Several } from "../tokens/several.tsx";

interface Chosen {
  readonly role: Role;
  readonly projects: readonly string[] | null;
}

/** The fields for a person's rights, and what is chosen in them. */
export function useRights(first: Chosen) {
  const [role, setRole] = useState(first.role);
  const [within, setWithin] = useState(first.projects);
  const projects = useCall("projects.list", {});
  const fields = (
    <>
      <div className="flex flex-col gap-1.5">
        <span className="text-sm font-medium">Role</span>
        <Choice label="Role" options={roles} value={role} onChange={setRole} />
      </div>
      {role === "member" && (
        <Checkbox
          label="Only some projects"
          checked={within !== null}
          onChange={(event) => setWithin(event.target.checked ? [] : null)}
        />
      )}
      {role === "member" && within !== null && (
        <View of={projects}>
          {(data) => (
            <Several
              legend="Projects"
              of={data.projects.map(({ slug }) => slug)}
              chosen={within}
              onChange={setWithin}
            />
          )}
        </View>
      )}
    </>
  );
  return { fields, role, projects: role === "member" ? within : null };
}
