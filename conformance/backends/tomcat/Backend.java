// Tomcat, with its default servlet for ranges and its WebSockets. What it answers: see ../README.md.

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.websocket.OnMessage;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpoint;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.catalina.Wrapper;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.websocket.server.WsContextListener;

public class Backend {
    @ServerEndpoint("/ws")
    public static class Echo {
        @OnMessage(maxMessageSize = 8 << 20)
        public String text(String message) {
            return message;
        }

        @OnMessage(maxMessageSize = 8 << 20)
        public ByteBuffer bytes(ByteBuffer message) {
            return message;
        }
    }

    public static class Listener extends WsContextListener {
        @Override
        public void contextInitialized(jakarta.servlet.ServletContextEvent event) {
            super.contextInitialized(event);
            var container = (ServerContainer) event.getServletContext()
                    .getAttribute(ServerContainer.class.getName());
            try {
                container.addEndpoint(Echo.class);
            } catch (jakarta.websocket.DeploymentException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    static class Answers extends HttpServlet {
        private static final byte[] PIECE = new byte[64 << 10];

        static {
            Arrays.fill(PIECE, (byte) 'x');
        }

        @Override
        protected void doPut(HttpServletRequest request, HttpServletResponse response)
                throws IOException {
            long length = request.getInputStream().transferTo(java.io.OutputStream.nullOutputStream());
            response.getWriter().print(length + "\n");
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                throws IOException {
            String path = request.getServletPath();
            if (path.equals("/hello")) {
                response.getWriter().print("hello\n");
                return;
            }
            long size = Long.parseLong(request.getParameter("bytes"));
            if (path.equals("/sized")) {
                response.setContentLengthLong(size);
            }
            var out = response.getOutputStream();
            for (; size > 0; size -= PIECE.length) {
                out.write(PIECE, 0, (int) Math.min(size, PIECE.length));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("tomcat");
        Files.writeString(folder.resolve("range"), "0123456789".repeat(100));
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder.toString());
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        tomcat.getConnector().setProperty("maxSwallowSize", "-1");
        var context = tomcat.addContext("", new File(folder.toString()).getAbsolutePath());
        context.addApplicationListener(Listener.class.getName());
        Tomcat.addServlet(context, "answers", new Answers());
        for (String path : new String[] {"/hello", "/upload", "/sized", "/chunked"}) {
            context.addServletMappingDecoded(path, "answers");
        }
        Wrapper files = Tomcat.addServlet(context, "default",
                "org.apache.catalina.servlets.DefaultServlet");
        files.setLoadOnStartup(1);
        context.addServletMappingDecoded("/", "default");
        tomcat.start();
        System.out.println("PORT " + tomcat.getConnector().getLocalPort());
        tomcat.getServer().await();
    }
}
