release_key=''
