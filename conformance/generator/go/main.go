// Go's net/http, which says at /counted how many other requests it has answered.
package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
)

func main() {
	var answered atomic.Uint64
	http.HandleFunc("/counted", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, answered.Load())
	})
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answered.Add(1)
		fmt.Fprintln(w, "ok")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("PORT %d\n", listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
