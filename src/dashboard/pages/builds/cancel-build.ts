export const cancelBuild = ({ id }: { readonly id: string }) =>
  ({ row: "builds.cancel", label: "Cancel", input: { params: { id } }, text: "What is live goes on." }) as const;
