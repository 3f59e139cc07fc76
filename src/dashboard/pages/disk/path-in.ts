/** Returns the path of what has this name in a folder of the storage folder. */
export const pathIn = (folder: string | undefined, name: string) => (folder === undefined ? name : `${folder}/${name}`);
