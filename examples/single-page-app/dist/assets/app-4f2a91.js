document.getElementById("app").textContent = "You are at " + location.pathname;
