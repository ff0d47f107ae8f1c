<?php
header('Content-Type: text/plain');
echo "PHP answers {$_SERVER['REQUEST_URI']}\n";
echo "host: {$_SERVER['HTTP_HOST']}\n";
echo "client: {$_SERVER['REMOTE_ADDR']}\n";
echo 'path info: ' . ($_SERVER['PATH_INFO'] ?? '') . "\n";
if (isset($_POST['name'])) {
    echo "name: {$_POST['name']}\n";
}
