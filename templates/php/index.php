<?php
header('content-type: text/plain; charset=utf-8');
echo getenv('GREETING') ?: 'Hello from PHP', "\n";
