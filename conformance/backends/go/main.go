// Go's net/http, with WebSockets by gorilla/websocket. What it answers: see ../README.md.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

var piece = bytes.Repeat([]byte("x"), 64<<10)

func pieces(w io.Writer, size int) {
	for size > 0 {
		next := piece[:min(size, len(piece))]
		if _, err := w.Write(next); err != nil {
			return
		}
		size -= len(next)
	}
}

var upgrader = websocket.Upgrader{}

func echo(w http.ResponseWriter, r *http.Request) {
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer socket.Close()
	for {
		kind, message, err := socket.ReadMessage()
		if err != nil || socket.WriteMessage(kind, message) != nil {
			return
		}
	}
}

func main() {
	range_ := strings.Repeat("0123456789", 100)
	modified := time.Unix(1700000000, 0)
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("bytes"))
		switch r.URL.Path {
		case "/upload":
			length, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%d\n", length)
		case "/sized":
			w.Header().Set("Content-Length", strconv.Itoa(size))
			pieces(w, size)
		case "/chunked":
			pieces(w, size)
		case "/range":
			http.ServeContent(w, r, "range.txt", modified, strings.NewReader(range_))
		default:
			io.WriteString(w, "hello\n")
		}
	})
	http.HandleFunc("/ws", echo)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("PORT", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
