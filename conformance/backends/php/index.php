<?php
// What it answers: see ../README.md; and /params, /post and /stderr.

function xs(int $bytes): void
{
    $piece = str_repeat('x', 65536);
    for (; $bytes > 0; $bytes -= 65536) {
        echo $bytes < 65536 ? substr($piece, 0, $bytes) : $piece;
    }
}

$bytes = (int) ($_GET['bytes'] ?? 0);
header('Content-Type: text/plain');
switch ($_SERVER['DOCUMENT_URI']) {
    case '/upload':
        $body = fopen('php://input', 'r');
        $length = 0;
        while (!feof($body)) {
            $length += strlen(fread($body, 1 << 20));
        }
        echo "$length\n";
        break;
    case '/sized':
        header("Content-Length: $bytes");
        xs($bytes);
        break;
    case '/chunked':
        xs($bytes);
        break;
    case '/range':
        header('Content-Length: 1000');
        echo str_repeat('0123456789', 100);
        break;
    case '/params':
        foreach (explode(' ', $_GET['names']) as $name) {
            echo "$name=" . ($_SERVER[$name] ?? '(none)') . "\n";
        }
        break;
    case '/post':
        echo "{$_POST['text']} {$_FILES['file']['name']} {$_FILES['file']['size']}\n";
        break;
    case '/stderr':
        error_log('a message of the script');
        echo "said\n";
        break;
    case '/fatal':
        missing_function();
    default:
        header('Content-Length: 6');
        echo "hello\n";
}
